/* SPDX-License-Identifier: MIT */
/* E2B's services: the rows. */
#include "http/api/e2b/browser.h"
#include "http/api/e2b/e2b.h"
#include "http/api/e2b/replies.h"
#include "http/api/e2b/target.h"
#include "http/server/auth.h"

enum {
    INPUT_MAX = 16 << 20, /* of SendInput, as base64 in JSON */
    CODE_MAX = 16 << 20,  /* of a cell */
};

static uint64_t any_size(const struct app *a)
{
    (void)a;
    return UINT64_MAX;
}

static uint64_t input_max(const struct app *a)
{
    (void)a;
    return INPUT_MAX;
}

static uint64_t code_max(const struct app *a)
{
    (void)a;
    return CODE_MAX;
}

/* ---- envd ---- */

/* clang-format off */
#define UNARY  ROUTE_BODY
#define STREAM (ROUTE_BODY | ROUTE_STREAM)
#define PROCESS "/process.Process/"
#define FILESYSTEM "/filesystem.Filesystem/"
static const struct route envd_rows[] = {
    {"GET",  "/health",                       e2b_health,                0, "envd", "does it run"},
    {"GET",  "/files",                        e2b_files_get,             ROUTE_HEAD, "envd", "read a file"},
    {"POST", "/files",                        e2b_files_post,            ROUTE_BODY_STREAM, "envd", "write files", any_size},
    {"GET",  "/envs",                         e2b_envs,                  0, "envd", "variables of the sandbox"},
    {"POST", PROCESS "Start",                 e2b_process_start,         STREAM, "envd", "start a process and follow it"},
    {"POST", PROCESS "Connect",               e2b_process_connect,       STREAM | ROUTE_FOLLOW, "envd", "follow a process"},
    {"POST", PROCESS "List",                  e2b_process_list,          UNARY, "envd", "processes that run"},
    {"POST", PROCESS "SendInput",             e2b_process_send_input,    UNARY, "envd", "standard input", input_max},
    {"POST", PROCESS "StreamInput",           e2b_process_stream_input,  STREAM, "envd", "standard input", input_max},
    {"POST", PROCESS "CloseStdin",            e2b_process_close_stdin,   UNARY, "envd", "end of standard input"},
    {"POST", PROCESS "SendSignal",            e2b_process_send_signal,   UNARY, "envd", "signal a process"},
    {"POST", PROCESS "Update",                e2b_process_update,        UNARY, "envd", "resize a terminal"},
    {"POST", FILESYSTEM "Stat",               e2b_fs_stat,               UNARY, "envd", "look at an entry"},
    {"POST", FILESYSTEM "MakeDir",            e2b_fs_make_dir,           UNARY, "envd", "make a directory"},
    {"POST", FILESYSTEM "Move",               e2b_fs_move,               UNARY, "envd", "rename an entry"},
    {"POST", FILESYSTEM "ListDir",            e2b_fs_list_dir,           UNARY, "envd", "list a directory"},
    {"POST", FILESYSTEM "Remove",             e2b_fs_remove,             UNARY, "envd", "remove a tree"},
    {"POST", FILESYSTEM "WatchDir",           e2b_fs_watch_dir,          STREAM | ROUTE_FOLLOW, "envd", "follow a directory"},
    {"POST", FILESYSTEM "CreateWatcher",      e2b_fs_create_watcher,     UNARY, "envd", "watch a directory"},
    {"POST", FILESYSTEM "GetWatcherEvents",   e2b_fs_get_watcher_events, UNARY, "envd", "what was seen"},
    {"POST", FILESYSTEM "RemoveWatcher",      e2b_fs_remove_watcher,     UNARY, "envd", "watch no more"},
};

static const struct route interpreter_rows[] = {
    {"GET",    "/health",             e2b_interpreter_health, 0, "interpreter", "does it run"},
    {"POST",   "/execute",            e2b_execute,            STREAM, "interpreter", "run a cell", code_max},
    {"POST",   "/contexts",           e2b_contexts_create,    UNARY, "interpreter", "start an interpreter"},
    {"GET",    "/contexts",           e2b_contexts_list,      0, "interpreter", "the interpreters"},
    {"DELETE", "/contexts/*",         e2b_context_delete,     0, "interpreter", "end an interpreter"},
    {"POST",   "/contexts/*/restart", e2b_context_restart,    UNARY, "interpreter", "start it anew"},
};

static const struct route ports_rows[] = {
    {"GET", "/**", e2b_port, ROUTE_ANY_METHOD | ROUTE_BODY_STREAM | ROUTE_STREAM | ROUTE_FOLLOW, "ports",
     "a server inside the sandbox", any_size},
};

static const struct route preflight_rows[] = {
    {"OPTIONS", "/**", e2b_preflight, 0, "preflight", "may a web page send this"},
};

static const struct route control_rows[] = {
    {"POST",   "/v2/sandboxes",                 e2b_create,         ROUTE_AUTH | ROUTE_BODY, "control", "make a sandbox"},
    {"POST",   "/sandboxes",                    e2b_create_old,     ROUTE_AUTH | ROUTE_BODY, "control", "make a sandbox"},
    {"GET",    "/v2/sandboxes",                 e2b_list,           ROUTE_AUTH, "control", "sandboxes, page by page"},
    {"GET",    "/sandboxes",                    e2b_list_old,       ROUTE_AUTH, "control", "those that run"},
    {"GET",    "/sandboxes/*",                  e2b_info,           ROUTE_AUTH, "control", "a sandbox"},
    {"DELETE", "/sandboxes/*",                  e2b_kill,           ROUTE_AUTH, "control", "end it"},
    {"POST",   "/sandboxes/*/connect",          e2b_connect,        ROUTE_AUTH | ROUTE_BODY, "control", "resume it, or lengthen its life"},
    {"GET",    "/sandboxes/*/logs",             e2b_logs,           ROUTE_AUTH, "control", "nothing: it keeps none"},
    {"GET",    "/v2/sandboxes/*",               e2b_info,           ROUTE_AUTH, "control", "a sandbox"},
    {"DELETE", "/v2/sandboxes/*",               e2b_kill,           ROUTE_AUTH, "control", "end it"},
    {"POST",   "/v2/sandboxes/*/connect",       e2b_connect,        ROUTE_AUTH | ROUTE_BODY, "control", "resume it, or lengthen its life"},
    {"GET",    "/v2/sandboxes/*/logs",          e2b_logs,           ROUTE_AUTH, "control", "nothing: it keeps none"},
    {"POST",   "/sandboxes/*/timeout",          e2b_timeout,        ROUTE_AUTH | ROUTE_BODY, "control", "when its life ends"},
    {"POST",   "/sandboxes/*/refreshes",        e2b_refresh,        ROUTE_AUTH | ROUTE_BODY, "control", "lengthen its life"},
    {"POST",   "/sandboxes/*/pause",            e2b_pause,          ROUTE_AUTH | ROUTE_BODY, "control", "pause it"},
    {"POST",   "/sandboxes/*/resume",           e2b_resume,         ROUTE_AUTH | ROUTE_BODY, "control", "resume it"},
    {"GET",    "/sandboxes/*/metrics",          e2b_metrics,        ROUTE_AUTH, "control", "what it uses"},
    {"PUT",    "/sandboxes/*/network",          e2b_no_rules,       ROUTE_AUTH | ROUTE_BODY, "control", "not offered"},
    {"POST",   "/sandboxes/*/snapshots",        e2b_no_snapshots,   ROUTE_AUTH | ROUTE_BODY, "control", "not offered"},
    {"POST",   "/sandboxes/*/fork",             e2b_no_snapshots,   ROUTE_AUTH | ROUTE_BODY, "control", "not offered"},
    {"GET",    "/snapshots",                    e2b_no_snapshots,   ROUTE_AUTH, "control", "not offered"},
    {"GET",    "/templates/aliases/*",          e2b_template_alias, ROUTE_AUTH, "control", "is there such a template"},
    {"GET",    "/templates/**",                 e2b_no_templates,   ROUTE_AUTH | ROUTE_ANY_METHOD, "control", "not offered"},
    {"GET",    "/v2/templates/**",              e2b_no_templates,   ROUTE_AUTH | ROUTE_ANY_METHOD, "control", "not offered"},
    {"GET",    "/v3/templates",                 e2b_no_templates,   ROUTE_AUTH | ROUTE_ANY_METHOD, "control", "not offered"},
    {"GET",    "/templates",                    e2b_no_templates,   ROUTE_AUTH | ROUTE_ANY_METHOD, "control", "not offered"},
    {"GET",    "/volumes",                      e2b_no_volumes,     ROUTE_AUTH | ROUTE_ANY_METHOD, "control", "not offered"},
    {"GET",    "/volumes/**",                   e2b_no_volumes,     ROUTE_AUTH | ROUTE_ANY_METHOD, "control", "not offered"},
    {"GET",    "/secrets",                      e2b_no_volumes,     ROUTE_AUTH | ROUTE_ANY_METHOD, "control", "not offered"},
    {"GET",    "/secrets/**",                   e2b_no_volumes,     ROUTE_AUTH | ROUTE_ANY_METHOD, "control", "not offered"},
};
/* clang-format on */

/* The key, in its own header or as a bearer token. */
static const char *api_key(const struct http_call *c)
{
    const char *key = http_header(c, "x-api-key");

    return key ? key : auth_bearer(http_header(c, "authorization"));
}

const struct dialect e2b_dialect = {
    .name = "e2b",
    .title = "E2B's control plane",
    .about = "Sandboxes as E2B's SDKs make and find them.",
    .routes = {control_rows, ARRAY_LEN(control_rows)},
    .prefix = "/v2/",
    .traits = DIALECT_ELSEWHERE,
    .lenient = true,
    .secret = api_key,
    .admit = e2b_admit_browser,
    .refuse = e2b_refuse,
    .error = e2b_error,
    .issues = e2b_issues,
};

const struct dialect e2b_envd_dialect = {
    .name = "e2b_envd",
    .title = "E2B's envd",
    .about = "Files and commands of a sandbox as E2B's SDKs ask for them.",
    .routes = {envd_rows, ARRAY_LEN(envd_rows)},
    .claims = e2b_claims_envd,
    .admit = e2b_admit_envd,
    .traits = DIALECT_ELSEWHERE | DIALECT_CLAIMED,
    .lenient = true,
    .refuse = e2b_refuse,
    .error = e2b_error,
    .issues = e2b_issues,
};

const struct dialect e2b_interpreter_dialect = {
    .name = "e2b_interpreter",
    .title = "E2B's code interpreter",
    .about = "Cells of a sandbox as E2B's SDKs run them.",
    .routes = {interpreter_rows, ARRAY_LEN(interpreter_rows)},
    .claims = e2b_claims_interpreter,
    .admit = e2b_admit_interpreter,
    .traits = DIALECT_ELSEWHERE | DIALECT_CLAIMED,
    .lenient = true,
    .refuse = e2b_text_refuse,
    .error = e2b_text_error,
    .issues = e2b_text_issues,
};

const struct dialect e2b_ports_dialect = {
    .name = "e2b_ports",
    .title = "Ports",
    .about = "Servers inside a sandbox.",
    .routes = {ports_rows, ARRAY_LEN(ports_rows)},
    .claims = e2b_claims_port,
    .admit = e2b_admit_port,
    .traits = DIALECT_ELSEWHERE | DIALECT_CLAIMED,
    .lenient = true,
    .refuse = e2b_refuse,
    .error = e2b_error,
    .issues = e2b_issues,
};

const struct dialect e2b_preflight_dialect = {
    .name = "e2b_preflight",
    .title = "Questions of browsers",
    .about = "May a web page use E2B's SDKs here?",
    .routes = {preflight_rows, ARRAY_LEN(preflight_rows)},
    .claims = e2b_claims_preflight,
    .admit = e2b_admit_browser,
    .traits = DIALECT_ELSEWHERE | DIALECT_CLAIMED,
    .lenient = true,
    .refuse = e2b_refuse,
    .error = e2b_error,
    .issues = e2b_issues,
};
