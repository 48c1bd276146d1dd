/* SPDX-License-Identifier: MIT */
/* Schemas of answers, for the documentation. tests/api/test_openapi_client.py compares them with
 * answers. */
#include "base/cleanup.h"
#include "http/api/openapi/openapi.h"

/* clang-format off */
#define T_STRING  "{\"type\":\"string\"}"
#define T_TEXT    "{\"type\":[\"string\",\"null\"]}"
#define T_INT     "{\"type\":\"integer\"}"
#define T_COUNT   "{\"type\":[\"integer\",\"null\"]}"
#define T_NUMBER  "{\"type\":\"number\"}"
#define T_BOOL    "{\"type\":\"boolean\"}"
#define T_OBJECT  "{\"type\":\"object\",\"additionalProperties\":true}"
#define T_ANY     "{}"
#define T_STRINGS "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define T_OBJECTS "{\"type\":\"array\",\"items\":" T_OBJECT "}"
#define T_REF(name)  "{\"$ref\":\"#/components/schemas/" name "\"}"
#define T_LIST(name) "{\"type\":\"array\",\"items\":" T_REF(name) "}"
#define T_OUTCOME "{\"type\":\"string\",\"enum\":[\"success\",\"error\",\"crash\",\"timeout\",\"terminated\"]}"
#define T_ENGINE  "{\"type\":\"string\",\"enum\":[\"native\",\"wasm\"]}"
#define T_STATUS  "{\"type\":\"string\",\"enum\":[\"success\",\"failed\",\"timeout\",\"error\"]}"
#define T_STATE \
    "{\"type\":\"string\",\"enum\":[\"loading\",\"idle\",\"busy\",\"collecting\",\"stopping\",\"down\"]}"

static const struct openapi_member execution_members[] = {
    {"execution_id",      T_STRING,  "as asked for, or made"                                          },
    {"status",            T_STATUS,  "error: the sandbox failed or a resource limit was met"          },
    {"stdout",            T_STRING,  "exactly what the program wrote"                                 },
    {"stderr",            T_STRING,  "the same, and at the end why it was stopped, if it was"         },
    {"exit_code",         T_INT,     "128 + signal; -1 when it did not end by itself"                 },
    {"execution_time",    T_NUMBER,  "seconds of wall time"                                           },
    {"return_value",      T_ANY,     "what the handler returned, any JSON value"                      },
    {"metrics",           T_OBJECT,  "duration_ms, cpu_time_ms, peak_memory_mb, io_*_bytes"           },
    {"artifacts",         T_STRINGS, "files left in the workspace, relative, sorted"                  },
    {"artifact_metadata", T_OBJECTS, "path, size, mime_type, type, created_at, checksum (SHA-256)"    },
    {"left_out",          T_OBJECTS, "only when files could not be kept: path, size, reason"          },
    {"artifacts_left_out", T_INT,    "only when some were: how many files are not in the list"        },
    {"stdout_truncated",  T_BOOL,    "only when stdout was cut"                                       },
    {"stderr_truncated",  T_BOOL,    "only when stderr was cut"                                       },
    {"error",             T_OBJECT,  "type, message and stack of an exception, if there was one"      },
    {"termination",       T_OBJECT,  "reason, and signal, limit, limit_value, observed, hint if known"},
    {"denied",            T_OBJECTS, "only after a failure: what was refused, setting, advice"        },
    {"network", T_LIST("NetworkRow"), "of one with a network: what was reached and refused"},
    {"network_left_out", T_INT, "connections to hosts beyond the first 64"},
    {"isolation",         T_OBJECT,  "jail, template, warm, traits"                                   },
    {"timings",           T_OBJECT,  "queue_ms, start_ms, run_ms, collect_ms, total_ms"               },
};

static const struct openapi_member pending_members[] = {
    {"execution_id", T_STRING, "ask for it at /v1/executions/{id}"},
    {"status",       T_STRING, "PENDING"                          },
    {"message",      T_STRING, "Execution submitted"              },
};

static const struct openapi_member synced_members[] = {
    {"status",                 T_STRING,  "completed"},
    {"installed_dependencies", T_OBJECTS,
     "name, version, install_location, install_time, "
     "is_from_template; transitive ones, too"        },
    {"error",                  T_STRING,  "empty"    },
    {"started_at",             T_STRING,  "UTC"      },
    {"completed_at",           T_STRING,  "UTC"      },
};

static const struct openapi_member problem_members[] = {
    {"error_code",   T_STRING, "a stable name, such as Executor.ValidationError" },
    {"description",  T_STRING, "what kind of problem it is"                      },
    {"error_detail", T_TEXT, "what it is about"                                },
    {"solution",     T_TEXT, "what may help; may be null"                      },
    {"request_id",   T_STRING, "as in the X-Request-Id header"                   },
    {"detail",       T_ANY,    "for validation errors a list of {type, loc, msg}"},
};

static const struct openapi_member files_members[] = {
    {"created", T_OBJECTS, "type, path, content, size, timestamp"},
    {"modified", T_OBJECTS, "the same, and oldContent"},
    {"deleted", T_OBJECTS, "type, path, oldContent"},
    {"denied", T_OBJECTS, "path, operation"},
    {"leftOut", T_INT, "changes that are not listed, if there are any"},
};

static const struct openapi_member result_members[] = {
    {"status", T_OUTCOME, "what became of it"},
    {"success", T_BOOL, "status is success"},
    {"result", T_ANY, "what the function returned, any JSON value"},
    {"error", T_OBJECT, "type, message, stack"},
    {"stdout", T_STRING, "exactly what was written"},
    {"stderr", T_STRING, "the same"},
    {"exitCode", T_INT, "0; 1 after an error, 124 a timeout, 143 cancelled"},
    {"files", T_REF("FunctionFiles"), "what it changed"},
    {"sync", T_OBJECT, "synced, failed, skipped, rolledBack, events"},
    {"meta", T_OBJECT, "duration, signatureSource, callId, engine, language, functionName, argsMode, loading, loadingReason"},
    {"session", T_OBJECT, "of a session: id, generation, call, restarted, reason, interrupted, reset"},
    {"id", T_STRING, "of a session that was created"},
    {"items", T_INT, "of a stream: how many there were"},
    {"termination", T_OBJECT, "reason, and signal, limit, limit_value, hint if known"},
    {"isolation", T_OBJECT, "jail, warm, traits"},
    {"timings", T_OBJECT, "queue_ms, start_ms, run_ms, collect_ms, total_ms"},
};

static const struct openapi_member session_members[] = {
    {"id", T_STRING, ""},
    {"language", T_TEXT, ""},
    {"engine", T_ENGINE, ""},
    {"isolation", T_TEXT, "name of its jail"},
    {"state", T_STATE, "down: there is no process until the next call"},
    {"createdAt", T_STRING, "UTC"},
    {"generation", T_INT, "processes so far"},
    {"calls", T_INT, "begun so far"},
    {"queued", T_INT, "calls that wait"},
    {"timeout", T_NUMBER, "of a call that names none"},
    {"idleTimeout", T_NUMBER, "0: never"},
    {"idleFor", T_NUMBER, "seconds, while it rests"},
    {"lost", T_STRING, "why its state was lost, until a call has told"},
    {"limits", T_OBJECT, "memoryMb, workspaceMb, pids, outputBytes, resultBytes, queue"},
    {"usage", T_OBJECT, "cpuMs, memoryPeakBytes"},
};

static const struct openapi_member sessions_members[] = {
    {"sessions", T_LIST("Session"), "those there are"},
};

static const struct openapi_member root_members[] = {
    {"service", T_STRING, "sandbox-executor"},
    {"version", T_STRING, ""},
    {"console", T_TEXT, "path of the console; null: there is none"},
    {"docs", T_STRING, "path of this documentation"},
    {"health", T_STRING, "path"},
    {"execute", T_STRING, "path"},
    {"openapi", T_STRING, "path"},
};

static const struct openapi_member console_session_members[] = {
    {"key", T_STRING, "a bearer token that opens what the secret opens"},
    {"expires_at", T_STRING, "UTC"},
};

static const struct openapi_member console_ticket_members[] = {
    {"ticket", T_STRING, "is exchanged for a key, once"},
    {"path", T_STRING, "with the ticket in its fragment"},
    {"expires_in", T_INT, "seconds"},
};

static const struct openapi_member health_members[] = {
    {"status", T_STRING, "ok, healthy where there is a control plane, or unhealthy with 503"},
    {"version", T_STRING, ""},
    {"isolation", T_STRING, "name of the default jail"},
    {"warning", T_STRING, "if programs run without isolation"},
    {"state_directory", T_STRING, "if it is full: artifacts are not kept"},
    {"platform", T_STRING, ""},
    {"uptime_seconds", T_NUMBER, ""},
    {"active_executions", T_INT, ""},
    {"reason", T_STRING, "of what is wrong"},
    {"detail", T_ANY, "the same where older clients look"},
};

static const struct openapi_member about_members[] = {
    {"service", T_STRING, ""},
    {"version", T_STRING, ""},
    {"isolation", T_STRING, "name of the default jail"},
    {"platform", T_STRING, ""},
    {"kernel", T_STRING, "release"},
    {"machine", T_STRING, ""},
    {"workspace_path", T_STRING, ""},
    {"uptime_seconds", T_NUMBER, ""},
    {"active_executions", T_INT, ""},
    {"queued_executions", T_INT, ""},
    {"retained_executions", T_INT, ""},
    {"languages", T_OBJECTS, "name, version, available"},
};

static const struct openapi_member capabilities_members[] = {
    {"version", T_STRING, ""},
    {"jail", T_STRING, "the default one"},
    {"isolation_level", T_STRING, ""},
    {"traits", T_STRINGS, "what the default jail isolates"},
    {"traits_missing", T_STRINGS, "what it does not"},
    {"advice", T_STRINGS, "what on this host is in the way of them, and what to do about it"},
    {"templates", T_ANY, "warmed interpreters, and why one cannot be warmed"},
    {"jails", T_OBJECTS, "name, allowed, available, default, version, reason"},
    {"limits", T_OBJECT, "of one execution"},
    {"languages", T_OBJECTS, "name, version, available"},
    {"wasm", T_OBJECT, "languages of the engine wasm"},
    {"settings", T_OBJECT, "sizes and sources of options"},
    {"dependency_sync", T_BOOL, "packages can be installed"},
};

static const struct openapi_member openapi_members[] = {
    {"openapi", T_STRING, "version"},
    {"paths", T_OBJECT, ""},
};

static const struct openapi_member state_members[] = {
    {"execution_id", T_STRING, ""},
    {"session_id", T_TEXT, ""},
    {"state", T_STRING, "queued, running, done"},
    {"status", T_TEXT, "of a finished one"},
    {"language", T_STRING, ""},
    {"created_at", T_STRING, "UTC"},
    {"progress", T_ANY, "what the program last reported, or null"},
    {"result", "{\"anyOf\":[" T_REF("ExecutionResult") ",{\"type\":\"null\"}]}", "of a finished one"},
};

static const struct openapi_member row_members[] = {
    {"execution_id", T_STRING, ""},
    {"session_id", T_TEXT, ""},
    {"state", T_STRING, "queued, running, collecting, done"},
    {"status", T_TEXT, "of a finished one"},
    {"reason", T_TEXT, "of a finished one: why it ended"},
    {"language", T_STRING, ""},
    {"created_at", T_STRING, "UTC"},
    {"exit_code", T_INT, "of a finished one"},
    {"total_ms", T_NUMBER, "of a finished one"},
    {"stdout_bytes", T_INT, "of a finished one"},
    {"stderr_bytes", T_INT, "of a finished one"},
    {"artifacts", T_INT, "of a finished one: how many"},
};

static const struct openapi_member rows_members[] = {
    {"executions", T_LIST("ExecutionRow"), "the newest first"},
    {"next", T_TEXT, "cursor of the next page; null: there is none"},
};

static const struct openapi_member stopping_members[] = {
    {"execution_id", T_STRING, ""},
    {"state", T_STRING, "stopping"},
};

static const struct openapi_member report_members[] = {
    {"synced", T_STRINGS, "paths written back"},
    {"failed", T_OBJECTS, "path and error"},
    {"skipped", T_STRINGS, "paths"},
    {"rolledBack", T_BOOL, "what was written was undone"},
    {"aborted", T_BOOL, "a rule ended it"},
    {"events", T_OBJECTS, "what happened, in order"},
};

static const struct openapi_member inspection_members[] = {
    {"language", T_STRING, ""},
    {"functions", T_OBJECTS, "name, signature, schema"},
    {"complete", T_BOOL, "all could be read"},
    {"issues", T_OBJECTS, "what could not be read"},
};

static const struct openapi_member command_members[] = {
    {"stdout", T_STRING, ""},
    {"stderr", T_STRING, ""},
    {"error", T_STRING, "if the code is not 0"},
    {"code", T_INT, "-1: ended by a signal"},
    {"stdout_truncated", T_BOOL, "only when it was cut"},
    {"stderr_truncated", T_BOOL, "only when it was cut"},
    {"denied", T_OBJECTS, "what was refused, setting, advice"},
    {"hint", T_STRING, "below /v1/sandboxes: what may help"},
    {"termination", T_OBJECT, "below /v1/sandboxes: reason, signal"},
    {"timings", T_OBJECT, "below /v1/sandboxes: queue_ms, start_ms, run_ms, total_ms"},
};

static const struct openapi_member changed_members[] = {
    {"error", T_STRING, "why not"},
    {"success", T_BOOL, ""},
};

static const struct openapi_member content_members[] = {
    {"content", T_STRING, "the file as text"},
    {"error", T_STRING, "why not"},
};

static const struct openapi_member entries_members[] = {
    {"entries", T_STRINGS, "names, sorted"},
    {"error", T_STRING, "why not"},
};

static const struct openapi_member port_members[] = {
    {"message", T_STRING, ""},
    {"port", T_STRING, ""},
    {"proxy_port", T_INT, "where it can be reached, of a named sandbox"},
    {"current_port", T_STRING, "of a conflict"},
    {"error", T_STRING, ""},
    {"success", T_BOOL, ""},
};

static const struct openapi_member started_members[] = {
    {"id", T_STRING, ""},
    {"pid", T_INT, "inside"},
    {"status", T_STRING, "running, completed, failed, killed"},
    {"error", T_STRING, "why not"},
};

static const struct openapi_member process_members[] = {
    {"command", T_STRING, ""},
    {"id", T_STRING, ""},
    {"pid", T_INT, "inside"},
    {"status", T_STRING, "running, completed, failed, killed"},
    {"exit_code", "{\"type\":[\"integer\",\"null\"]}", "null while it runs"},
    {"started_at", T_STRING, "RFC 3339"},
    {"completed_at", T_TEXT, "null while it runs"},
};

static const struct openapi_member processes_members[] = {
    {"processes", T_LIST("Process"), "in the order of their start"},
};

static const struct openapi_member killed_members[] = {
    {"success", T_BOOL, ""},
    {"message", T_STRING, ""},
    {"error", T_STRING, "why not"},
};

static const struct openapi_member sandbox_members[] = {
    {"id", T_STRING, ""},
    {"name", T_STRING, ""},
    {"state", T_STRING, "running, paused or ending"},
    {"created_at", T_STRING, "UTC"},
    {"timeout", T_NUMBER, "seconds without a request; 0: never"},
    {"ends_at", T_TEXT, "UTC; null: at no fixed time"},
    {"on_end", T_STRING, "delete or pause"},
    {"auto_resume", T_BOOL, "a request resumes it while it is paused"},
    {"template", T_TEXT, ""},
    {"metadata", T_OBJECT, "texts of its owner's own"},
    {"home", T_STRING, "where commands begin, and HOME"},
    {"access", T_OBJECT, "token, traffic_token, private_ports; of one that is made or asked for alone"},
    {"limits", T_OBJECT, "memory_mb, disk_mb, files, pids"},
    {"isolation", T_STRING, "name of its jail"},
    {"network", T_OBJECT, "mode: none, allow, public or host; with allow or deny, ports, transparent and bytes_max"},
    {"env", T_STRINGS, "names of variables"},
    {"bound_port", T_TEXT, ""},
    {"proxy_port", "{\"type\":[\"integer\",\"null\"]}", ""},
    {"processes", T_OBJECT, "running, kept"},
    {"writable", T_STRINGS, "directories; of one that is asked for alone"},
    {"usage", T_OBJECT, "cpu_ms, memory_bytes, memory_peak_bytes, oom_kills, pids, disk_bytes"},
};

static const struct openapi_member sandboxes_members[] = {
    {"sandboxes", T_LIST("Sandbox"), "those there are"},
    {"next", "{\"type\":[\"integer\",\"null\"]}", "for `after`; null: there are no more"},
};

static const struct openapi_member network_row_members[] = {
    {"host", T_STRING, "as the program named it"},
    {"port", T_INT, ""},
    {"verdict", T_STRING, "allowed or denied"},
    {"connections", T_INT, ""},
    {"requests", T_INT, "plain HTTP requests that were looked at"},
    {"bytes_up", T_INT, "from the program"},
    {"bytes_down", T_INT, "to the program"},
    {"reason", T_STRING, "of one that was denied"},
    {"advice", T_STRING, "what can be done about it"},
};

static const struct openapi_member sandbox_network_members[] = {
    {"mode", T_STRING, "none, allow, public or host"},
    {"allow", "{\"type\":\"array\"}", "of mode allow: hosts, or objects with methods and paths"},
    {"deny", T_STRINGS, "of mode public"},
    {"ports", "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", "of mode public"},
    {"transparent", T_BOOL, ""},
    {"bytes_max", T_INT, ""},
    {"network", T_LIST("NetworkRow"), "what was reached and what was refused so far"},
    {"network_left_out", T_INT, "connections to hosts beyond the first 64"},
};

static const struct openapi_member lists_members[] = {
    {"python", T_STRINGS, "requirements as in PEP 508"},
    {"npm", T_STRINGS, "names of npm, with or without a version"},
};

static const struct openapi_member workspace_members[] = {
    {"session_id", T_TEXT, "null: not known until the session is used again"},
    {"bytes", T_COUNT, "on disk, when it was measured; null: never yet"},
    {"files", T_COUNT, "files and directories in it, the same"},
    {"measured_at", T_TEXT, "UTC; after each execution, and for each GET of it alone"},
    {"created_at", T_STRING, "UTC"},
    {"last_used_at", T_STRING, "UTC: when an execution of the session began or ended"},
    {"in_use", T_BOOL, "an execution of the session is running or waiting"},
};

static const struct openapi_member workspaces_members[] = {
    {"workspaces", T_LIST("Workspace"), "the newest first"},
    {"next", T_TEXT, "`cursor` of the next page; null: there is none"},
};

static const struct openapi_member package_set_members[] = {
    {"name", T_TEXT, "null: it has none"},
    {"id", T_STRING, "made from its lists"},
    {"state", "{\"type\":\"string\",\"enum\":[\"installing\",\"ready\",\"failed\"]}", ""},
    {"created_at", T_STRING, "UTC"},
    {"python", T_STRINGS, "as asked for"},
    {"npm", T_STRINGS, "as asked for"},
    {"installed", T_OBJECTS, "name, version, kind (python or npm); transitive ones, too"},
    {"files", T_INT, ""},
    {"bytes", T_INT, ""},
    {"error", T_STRING, "of one that failed: why, and the last lines of the installer"},
    {"progress", T_OBJECT, "while it is installed: elapsed_ms, downloaded_bytes, files, output"},
};

static const struct openapi_member package_sets_members[] = {
    {"packages", T_LIST("PackageSet"), "those there are"},
};

static const struct openapi_member sandbox_process_members[] = {
    {"pid", T_INT, "its number inside"},
    {"id", T_STRING, ""},
    {"tag", T_TEXT, "a name of its owner's own"},
    {"command", T_STRING, "the text, or the program"},
    {"config", "{\"type\":[\"object\",\"null\"]}", "cmd, args, envs, cwd as asked for"},
    {"terminal", "{\"type\":[\"object\",\"null\"]}", "columns, rows; null: none"},
    {"status", T_STRING, "running, completed, failed or killed"},
    {"exit_code", "{\"type\":[\"integer\",\"null\"]}", "-1: by a signal or a limit; null: it runs"},
    {"reason", T_TEXT, "exit, signal, timeout, oom, cancelled, ...; null: it runs"},
    {"signal", "{\"type\":[\"integer\",\"null\"]}", "that ended it; null: none"},
    {"started_at", T_STRING, "UTC"},
    {"ended_at", T_TEXT, "UTC; null: it runs"},
    {"output", T_OBJECT, "from: number of the oldest byte that is kept; bytes: how many there were; closed"},
};

static const struct openapi_member sandbox_processes_members[] = {
    {"processes", T_LIST("SandboxProcess"), "in the order of their start"},
};

static const struct openapi_member context_members[] = {
    {"id", T_STRING, ""},
    {"language", T_STRING, "python, javascript, typescript, bash or r"},
    {"cwd", T_STRING, "where it began"},
    {"state", T_STRING, "starting, idle, busy or down"},
    {"default", T_BOOL, "made on first use for cells that name only a language"},
    {"execution_count", T_INT, "cells that began"},
    {"waiting", T_INT, "cells that wait"},
    {"created_at", T_STRING, ""},
};

static const struct openapi_member contexts_members[] = {
    {"contexts", T_LIST("Context"), "in the order of their making"},
};

static const struct openapi_member mcp_request_members[] = {
    {"jsonrpc", T_STRING, "2.0"},
    {"id", T_ANY, "a text or a number; a notification has none"},
    {"method", T_STRING, "initialize, tools/list, tools/call, ..."},
    {"params", T_OBJECT, "what the method takes"},
};

static const struct openapi_member tool_bundle_members[] = {
    {"bundle",     T_STRING,  "its name"                                                          },
    {"version",    T_INT,     "from 1 on"                                                         },
    {"language",   T_STRING,  "of its source text"                                                },
    {"sha256",     T_STRING,  "of its source text"                                                },
    {"created_at", T_STRING,  "when this version was published"                                   },
    {"by",         T_STRING,  "the interface it was published through: rest or mcp"               },
    {"timeout",    T_INT,     "seconds of a call"                                                 },
    {"tools",      T_OBJECTS, "name, title, description, inputSchema, annotations, as in tools/list"},
    {"warnings",   T_STRINGS, "functions that were left out, and what their users will miss"      },
    {"code",       T_STRING,  "its source text, if that was asked for"                            },
};

static const struct openapi_member tool_calls_members[] = {
    {"execution_id", T_STRING,  "the run, as its result names it under io.sandbox-executor/run"},
    {"tool_calls",   T_OBJECTS, "tool, ms, ok, bytes_in, bytes_out, arguments, answer"         },
};

static const struct openapi_member tools_members[] = {
    {"bundles", T_OBJECTS, "name, version, language, sha256, created_at, by, tools (names)"},
    {"tools",   T_OBJECTS, "all of them by name, as in tools/list"                        },
};

static const struct openapi_member mcp_members[] = {
    {"jsonrpc", T_STRING, "2.0"},
    {"id", T_ANY, "of the request"},
    {"result", T_OBJECT, ""},
    {"error", T_OBJECT, "code, message, data"},
};
static const struct openapi_member cell_members[] = {
    {"context", T_STRING, "id of the interpreter"},
    {"language", T_STRING, ""},
    {"execution_count", T_INT, "number of the cell in its context"},
    {"status", T_STRING, "ok, error, timeout, interrupted or crashed"},
    {"stdout", T_STRING, ""},
    {"stderr", T_STRING, ""},
    {"stdout_truncated", T_BOOL, ""},
    {"stderr_truncated", T_BOOL, ""},
    {"results", "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"data\":{\"type\":\"object\"},"
                "\"metadata\":{\"type\":\"object\"},\"main\":{\"type\":\"boolean\"}}}}",
     "what was displayed: a MIME bundle each; main: the value of the last expression"},
    {"results_truncated", T_BOOL, ""},
    {"error", "{\"type\":[\"object\",\"null\"],\"properties\":{\"name\":{\"type\":\"string\"},"
              "\"value\":{\"type\":\"string\"},\"traceback\":{\"type\":\"string\"}}}", ""},
    {"restarted", T_BOOL, "the state of the context was lost before this cell"},
    {"failure", T_STRING, "why the interpreter did not start"},
    {"termination", T_OBJECT, "how an interpreter ended that crashed"},
    {"timings", T_OBJECT, "queue_ms, start_ms, run_ms"},
};

static const struct openapi_member written_members[] = {
    {"path", T_STRING, ""},
    {"size", T_INT, "bytes"},
    {"files", T_INT, "of an archive"},
    {"directories", T_INT, "of an archive"},
};

static const struct openapi_member entry_members[] = {
    {"name",        T_STRING, "the last part of the path"                              },
    {"path",        T_STRING, "absolute"                                               },
    {"path_base64", T_STRING, "only of a path that is not UTF-8: its bytes"            },
    {"type",        T_STRING, "file, directory, symlink, fifo, socket or device"       },
    {"size",        T_INT,    "bytes"                                                  },
    {"mode",        T_STRING, "octal, such as 0644"                                    },
    {"permissions", T_STRING, "as ls writes them, such as -rw-r--r--"                  },
    {"owner",       T_STRING, "a name, or its number"                                  },
    {"group",       T_STRING, "a name, or its number"                                  },
    {"uid",         T_INT,    ""                                                       },
    {"gid",         T_INT,    ""                                                       },
    {"modified_at", T_STRING, "UTC"                                                    },
    {"accessed_at", T_STRING, "UTC"                                                    },
    {"changed_at",  T_STRING, "UTC, also of its mode and its name"                     },
    {"link",        T_STRING, "only of a symbolic link: its text"                      },
    {"target",      T_TEXT,   "the same: where it leads, absolute; null: nowhere"      },
    {"target_type", T_TEXT,   "the same: what is there"                                },
    {"metadata",    T_OBJECT, "only when it has some: names and values of an upload"   },
};

static const struct openapi_member entry_list_members[] = {
    {"path",    T_STRING,            "the directory"                                        },
    {"entries", T_LIST("FileEntry"), "each directory before what is in it, sorted by bytes" },
    {"next",    T_TEXT,              "`after` of the next part; null: this is the last one" },
};

static const struct openapi_member exists_members[] = {
    {"exists", T_BOOL, ""},
};

static const struct openapi_member uploaded_members[] = {
    {"files", T_LIST("FileEntry"), "in the order of the body"},
};

static const struct openapi_member url_members[] = {
    {"method",     T_STRING, "GET or PUT"                                  },
    {"url",        T_STRING, "path and query; it opens this file alone"    },
    {"expires_at", T_STRING, "UTC"                                         },
};

#define SCHEMA(name, members, required) {name, members, ARRAY_LEN(members), required}
const struct openapi_schema openapi_answers[] = {
    SCHEMA("ExecutionResult", execution_members, "[\"execution_id\",\"status\",\"stdout\",\"stderr\",\"exit_code\"]"),
    SCHEMA("ExecutionPending", pending_members, "[\"execution_id\",\"status\"]"),
    SCHEMA("DependencySync", synced_members, "[\"status\"]"),
    SCHEMA("Problem", problem_members, "[\"error_code\",\"description\",\"request_id\"]"),
    SCHEMA("FunctionFiles", files_members, NULL),
    SCHEMA("FunctionResult", result_members, "[\"status\",\"success\"]"),
    SCHEMA("Session", session_members, "[\"id\",\"state\"]"),
    SCHEMA("Sessions", sessions_members, "[\"sessions\"]"),
    SCHEMA("Root", root_members, "[\"service\",\"version\"]"),
    SCHEMA("ConsoleSession", console_session_members, "[\"key\",\"expires_at\"]"),
    SCHEMA("ConsoleTicket", console_ticket_members, "[\"ticket\",\"path\"]"),
    SCHEMA("Health", health_members, "[\"status\"]"),
    SCHEMA("Info", about_members, NULL),
    SCHEMA("Capabilities", capabilities_members, NULL),
    SCHEMA("OpenApi", openapi_members, "[\"openapi\",\"paths\"]"),
    SCHEMA("Execution", state_members, "[\"execution_id\",\"state\"]"),
    SCHEMA("ExecutionRow", row_members, "[\"execution_id\",\"state\"]"),
    SCHEMA("Executions", rows_members, "[\"executions\"]"),
    SCHEMA("ExecutionStopping", stopping_members, NULL),
    SCHEMA("SyncReport", report_members, NULL),
    SCHEMA("Inspection", inspection_members, NULL),
    SCHEMA("CommandResult", command_members, "[\"stdout\",\"stderr\",\"code\"]"),
    SCHEMA("Changed", changed_members, "[\"success\"]"),
    SCHEMA("FileContent", content_members, NULL),
    SCHEMA("Entries", entries_members, NULL),
    SCHEMA("PortBound", port_members, "[\"success\"]"),
    SCHEMA("ProcessStarted", started_members, "[\"id\"]"),
    SCHEMA("Process", process_members, "[\"id\",\"status\"]"),
    SCHEMA("Processes", processes_members, "[\"processes\"]"),
    SCHEMA("ProcessKilled", killed_members, "[\"success\"]"),
    SCHEMA("NetworkRow", network_row_members, "[\"host\",\"port\",\"verdict\"]"),
    SCHEMA("SandboxNetwork", sandbox_network_members, "[\"mode\",\"network\"]"),
    SCHEMA("Sandbox", sandbox_members, "[\"id\",\"name\",\"state\"]"),
    SCHEMA("Sandboxes", sandboxes_members, "[\"sandboxes\"]"),
    SCHEMA("PackageLists", lists_members, NULL),
    SCHEMA("Workspace", workspace_members, "[\"session_id\",\"bytes\",\"files\",\"created_at\",\"last_used_at\",\"in_use\"]"),
    SCHEMA("Workspaces", workspaces_members, "[\"workspaces\"]"),
    SCHEMA("PackageSet", package_set_members, "[\"name\",\"id\",\"state\"]"),
    SCHEMA("PackageSets", package_sets_members, "[\"packages\"]"),
    SCHEMA("SandboxProcess", sandbox_process_members, "[\"pid\",\"id\",\"status\"]"),
    SCHEMA("SandboxProcesses", sandbox_processes_members, "[\"processes\"]"),
    SCHEMA("McpRequest", mcp_request_members, "[\"jsonrpc\",\"method\"]"),
    SCHEMA("ToolBundle", tool_bundle_members, "[\"bundle\",\"version\",\"tools\"]"),
    SCHEMA("ToolCalls", tool_calls_members, "[\"execution_id\",\"tool_calls\"]"),
    SCHEMA("Tools", tools_members, "[\"bundles\",\"tools\"]"),
    SCHEMA("McpMessage", mcp_members, "[\"jsonrpc\"]"),
    SCHEMA("Context", context_members, "[\"id\",\"language\",\"state\"]"),
    SCHEMA("Contexts", contexts_members, "[\"contexts\"]"),
    SCHEMA("CellResult", cell_members, "[\"status\",\"stdout\",\"stderr\",\"results\"]"),
    SCHEMA("FileEntry", entry_members, "[\"name\",\"path\",\"type\",\"size\",\"mode\"]"),
    SCHEMA("FileEntries", entry_list_members, "[\"path\",\"entries\",\"next\"]"),
    SCHEMA("FileExists", exists_members, "[\"exists\"]"),
    SCHEMA("FilesWritten", uploaded_members, "[\"files\"]"),
    SCHEMA("FileUrl", url_members, "[\"method\",\"url\",\"expires_at\"]"),
    SCHEMA("FileWritten", written_members, "[\"path\"]"),
};
/* clang-format on */
const size_t openapi_answers_n = ARRAY_LEN(openapi_answers);
