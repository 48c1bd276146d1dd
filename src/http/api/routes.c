/* SPDX-License-Identifier: MIT */
/*
 * The whole API on one screen: a table of rows for each dialect, and the dialects. Matching, 404,
 * 405, authentication, /openapi.json and /docs use it.
 */
#include "function/request.h"
#include "http/api/api.h"
#include "http/api/koyeb.h"
#include "http/api/problem.h"

static uint64_t execute_body_max(const struct app *a)
{
    return a->config.body_max_execute;
}

static uint64_t functions_body_max(const struct app *a)
{
    return a->config.body_max_functions;
}

static uint64_t file_body_max(const struct app *a)
{
    return a->config.body_max_file;
}

/* Uploads are bounded by the sandbox they go to. */
static uint64_t any_size(const struct app *a)
{
    (void)a;
    return UINT64_MAX;
}

/* clang-format off */

/* The verbs of a persistent sandbox: of the default one at the root and where its SDKs look for it,
 * of any other below its id. Only four of them insist on a method. */
#define VERB  (ROUTE_AUTH | ROUTE_BODY | ROUTE_ANY_METHOD)
#define FIXED (ROUTE_AUTH | ROUTE_BODY)
#define SANDBOX_VERBS(at) \
    {"POST", at "/run", api_run, VERB, "sandbox", "run a command and wait for it", NULL, &koyeb_command, \
     .answer = {{200, "CommandResult"}}}, \
    {"POST", at "/run_streaming", api_run_streaming, VERB | ROUTE_STREAM, "sandbox", \
     "run a command, its output as events", NULL, &koyeb_command, \
     .answer = {{200, NULL, "text/event-stream"}}}, \
    {"POST", at "/write_file", api_write_file, VERB, "sandbox", "write a file", file_body_max, &koyeb_file, \
     .answer = {{200, "Changed"}}}, \
    {"POST", at "/read_file", api_read_file, VERB, "sandbox", "read a file", NULL, &koyeb_path, \
     .answer = {{200, "FileContent"}}}, \
    {"POST", at "/delete_file", api_delete_file, VERB, "sandbox", "remove a file", NULL, &koyeb_path, \
     .answer = {{200, "Changed"}}}, \
    {"POST", at "/make_dir", api_make_dir, VERB, "sandbox", "make a directory and its parents", NULL, &koyeb_path, \
     .answer = {{200, "Changed"}}}, \
    {"POST", at "/delete_dir", api_delete_dir, VERB, "sandbox", "remove a tree", NULL, &koyeb_path, \
     .answer = {{200, "Changed"}}}, \
    {"POST", at "/list_dir", api_list_dir, VERB, "sandbox", "names in a directory", NULL, &koyeb_path, \
     .answer = {{200, "Entries"}}}, \
    {"POST", at "/bind_port", api_bind_port, VERB, "sandbox", "lead the proxy to a port inside", NULL, &koyeb_port, \
     .answer = {{200, "PortBound"}}}, \
    {"POST", at "/unbind_port", api_unbind_port, VERB, "sandbox", "lead it nowhere", \
     .answer = {{200, "PortBound"}}}, \
    {"POST", at "/start_process", api_start_process, FIXED, "sandbox", \
     "start a background process", NULL, &koyeb_command, \
     .answer = {{201, "ProcessStarted"}}}, \
    {"GET", at "/list_processes", api_list_processes, FIXED, "sandbox", \
     "background processes and their states", \
     .answer = {{200, "Processes"}}}, \
    {"POST", at "/kill_process", api_kill_process, FIXED, "sandbox", \
     "kill a background process and all it started", NULL, &koyeb_id, \
     .answer = {{200, "ProcessKilled"}}}, \
    {"GET", at "/process_logs_streaming", api_process_logs, FIXED | ROUTE_STREAM | ROUTE_FOLLOW, \
     "sandbox", "output of a background process as events", \
     .answer = {{200, NULL, "text/event-stream"}}, .query = "id!"}

static const struct route meta_rows[] = {
    {"GET",    "/",                  api_root,         0,          "meta", "what this is",                        NULL,
     .answer = {{200, "Root"}}},
    {"GET",    "/health",            api_health,       ROUTE_HEAD, "meta", "can work be accepted",                NULL,
     .answer = {{200, "Health"}}},
    {"GET",    "/info",              api_info,         ROUTE_AUTH, "meta", "version, host and load",              NULL,
     .answer = {{200, "Info"}}},
    {"GET",    "/metrics",           api_metrics,      ROUTE_AUTH, "meta", "numbers for Prometheus",              NULL,
     .answer = {{200, NULL, "text/plain"}}},
    {"GET",    "/openapi.json",      api_openapi,      0,          "meta", "this API as an OpenAPI document",     NULL,
     .answer = {{200, "OpenApi"}}},
    {"GET",    "/docs",              api_docs,         0,          "meta", "this API as a page",                  NULL,
     .answer = {{200, NULL, "text/html"}}},
    {"GET",    "/v1/capabilities",   api_capabilities, ROUTE_AUTH, "meta", "isolation, limits and languages here",
     .answer = {{200, "Capabilities"}}},
};

static const struct route execute_rows[] = {
    {"POST",   "/execute",           api_execute,      ROUTE_AUTH | ROUTE_BODY, "executions",
     "run code in a fresh sandbox and wait for the result", execute_body_max, &execute_shape,
     .answer = {{200, "ExecutionResult|ExecutionPending"}}},
    {"GET",    "/v1/executions/*",   api_execution_get,    ROUTE_AUTH, "executions",
     "state and result of an execution",
     .answer = {{200, "Execution"}}},
    {"DELETE", "/v1/executions/*",   api_execution_delete, ROUTE_AUTH, "executions",
     "end an execution early, or forget a finished one",
     .answer = {{204}, {202, "ExecutionStopping"}}},
    {"GET",    "/v1/executions/*/artifacts/**", api_artifact, ROUTE_AUTH | ROUTE_HEAD, "executions",
     "a file that an execution left behind",
     .answer = {{200, NULL, "application/octet-stream"}}},
    {"POST",   "/internal/session-config/sync", api_dependencies_sync, ROUTE_AUTH | ROUTE_BODY, "executions",
     "install the Python packages of a session, in place of those it had", NULL, &dependencies_shape,
     .answer = {{200, "DependencySync"}}},
};

static const struct route function_rows[] = {
    {"POST",   "/v1/functions/call", api_function_call, ROUTE_AUTH | ROUTE_BODY, "functions",
     "call one function of a piece of code in a fresh sandbox", functions_body_max, &call_shape,
     .answer = {{200, "FunctionResult"}}},
    {"POST",   "/v1/functions/sync", api_function_sync, ROUTE_AUTH | ROUTE_BODY, "functions",
     "write what a call changed in its mounts back to them", NULL, &sync_shape,
     .answer = {{200, "SyncReport"}}},
    {"POST",   "/v1/functions/inspect", api_inspect, ROUTE_AUTH | ROUTE_BODY, "functions",
     "every function of a piece of code, with signature and JSON Schema; never runs it", functions_body_max, &inspect_shape,
     .answer = {{200, "Inspection"}}},
    {"POST",   "/v1/sessions",       api_session_create, ROUTE_AUTH | ROUTE_BODY, "sessions",
     "load code once, to call its functions often", functions_body_max, &session_shape,
     .answer = {{201, "FunctionResult"}}},
    {"GET",    "/v1/sessions",       api_sessions_list,  ROUTE_AUTH, "sessions",
     "the function sessions there are",
     .answer = {{200, "Sessions"}}},
    {"GET",    "/v1/sessions/*",     api_session_get,    ROUTE_AUTH, "sessions",
     "state, limits and usage of a function session",
     .answer = {{200, "Session"}}},
    {"POST",   "/v1/sessions/*/call", api_session_call,  ROUTE_AUTH | ROUTE_BODY, "sessions",
     "call a function of a session; text/event-stream: each item of a generator as an event", functions_body_max, &turn_shape,
     .answer = {{200, "FunctionResult"}}},
    {"POST",   "/v1/sessions/*/reset", api_session_reset, ROUTE_AUTH | ROUTE_BODY, "sessions",
     "load the code of a session anew; hard: in another sandbox", NULL, &reset_shape,
     .answer = {{200, "FunctionResult"}}},
    {"DELETE", "/v1/sessions/*",     api_session_delete, ROUTE_AUTH, "sessions",
     "end a function session and everything in it",
     .answer = {{204}}},
};

static const struct route koyeb_rows[] = {
    SANDBOX_VERBS(""),
    SANDBOX_VERBS("/koyeb-sandbox"),
    {"GET",    "/koyeb-sandbox/health", api_koyeb_health, ROUTE_ANY_METHOD, "sandbox",
     "can work be accepted, for the SDKs",
     .answer = {{200, NULL, "text/plain"}}},
};

static const struct route sandbox_rows[] = {
    SANDBOX_VERBS("/v1/sandboxes/*"),
    {"POST",   "/v1/sandboxes",      api_sandbox_create, ROUTE_AUTH | ROUTE_BODY, "sandboxes",
     "make a persistent sandbox", NULL, &create_shape,
     .answer = {{201, "Sandbox"}}},
    {"GET",    "/v1/sandboxes",      api_sandboxes_list, ROUTE_AUTH, "sandboxes",
     "the persistent sandboxes there are",
     .answer = {{200, "Sandboxes"}}},
    {"GET",    "/v1/sandboxes/*",    api_sandbox_get,    ROUTE_AUTH, "sandboxes",
     "state, limits and usage of a sandbox",
     .answer = {{200, "Sandbox"}}},
    {"DELETE", "/v1/sandboxes/*",    api_sandbox_delete, ROUTE_AUTH, "sandboxes",
     "end a sandbox and everything in it",
     .answer = {{204}}},
    {"GET",    "/v1/sandboxes/*/files/**", api_raw_get,    ROUTE_AUTH | ROUTE_HEAD, "sandboxes",
     "a file of a sandbox, or a range of it; with ?archive=tar a directory",
     .answer = {{200, NULL, "application/octet-stream"}, {206, NULL, "application/octet-stream"}}, .query = "archive"},
    {"PUT",    "/v1/sandboxes/*/files/**", api_raw_put,    ROUTE_AUTH | ROUTE_BODY_STREAM, "sandboxes",
     "write a file of a sandbox, of any size; with ?archive=tar a directory", any_size,
     .answer = {{200, "FileWritten"}}, .query = "archive"},
    {"DELETE", "/v1/sandboxes/*/files/**", api_raw_delete, ROUTE_AUTH, "sandboxes",
     "remove a file, or with ?recursive=true a tree",
     .answer = {{204}}, .query = "recursive"},
};

#define OURS(rows) \
    .routes = {rows, ARRAY_LEN(rows)}, .traits = DIALECT_REQUEST_ID | DIALECT_ALLOW, \
    .refuse = problem_refuse, .error = problem_error, .issues = problem_issues

static const struct dialect meta_dialect     = {.name = "meta", OURS(meta_rows)};
static const struct dialect execute_dialect  = {.name = "execute", OURS(execute_rows)};
static const struct dialect function_dialect = {.name = "functions", OURS(function_rows)};
static const struct dialect sandbox_dialect  = {.name = "sandboxes", OURS(sandbox_rows)};
static const struct dialect koyeb_dialect    = {
    .name = "koyeb", .routes = {koyeb_rows, ARRAY_LEN(koyeb_rows)}, .prefix = "/koyeb-sandbox/",
    .traits = DIALECT_KEEP_ALIVE, .lenient = true,
    .refuse = koyeb_refuse, .error = koyeb_error, .issues = koyeb_issues,
};
/* clang-format on */

const struct dialect *const api_dialects[] = {
    &meta_dialect, &execute_dialect, &function_dialect, &koyeb_dialect, &sandbox_dialect, NULL,
};
