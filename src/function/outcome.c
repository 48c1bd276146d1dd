/* SPDX-License-Identifier: MIT */
#include "function/outcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "function/request.h"

const char *call_status_name(enum call_status s)
{
    static const char *const names[] = {"success", "error", "crash", "timeout", "terminated"};

    _Static_assert(ARRAY_LEN(names) == CALL_STATUS_COUNT, "every status has a name");
    return names[s];
}

/* ---- one row per reason ---- */

/* clang-format off */
static const struct {
    enum call_status status;
    int exit_code; /* 0: as it ended */
    const char *type, *words, *limit;
} rows[] = {
    [END_EXIT]      = {CALL_ERROR,      0, "NoResult", "", NULL},
    [END_SIGNAL]    = {CALL_CRASH,      0, "CrashError", "", NULL},
    [END_TIMEOUT]   = {CALL_TIMEOUT,    CALL_EXIT_TIMEOUT, "TimeoutError", "", "wall_time_ms"},
    [END_CPU]       = {CALL_ERROR,      1, "ResourceLimitError", "CPU time limit exceeded", "cpu_time_ms"},
    [END_OOM]       = {CALL_ERROR,      1, "MemoryLimitError", "memory limit exceeded", "memory_bytes"},
    [END_OUTPUT]    = {CALL_ERROR,      1, "ResourceLimitError", "output limit exceeded", "output_bytes"},
    [END_PIDS]      = {CALL_ERROR,      1, "ResourceLimitError", "process limit exceeded", "pids"},
    [END_DISK]      = {CALL_ERROR,      1, "ResourceLimitError", "workspace limit exceeded", "workspace_bytes"},
    [END_POLICY]    = {CALL_ERROR,      1, "PolicyError", "ended by policy", NULL},
    [END_CANCELLED] = {CALL_TERMINATED, CALL_EXIT_TERMINATED, "TerminatedError", "the call was cancelled", NULL},
    [END_SHUTDOWN]  = {CALL_TERMINATED, CALL_EXIT_TERMINATED, "TerminatedError", "the service is shutting down", NULL},
    [END_FAILED]    = {CALL_ERROR,      1, "SandboxError", "", NULL},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(rows) == END_REASON_COUNT, "every reason has a row");

static void limit_fill(const struct limits *l, enum end_reason why, struct call_outcome *o)
{
    const int64_t values[END_REASON_COUNT] = {
        [END_TIMEOUT] = (int64_t)l->wall_ms,    [END_CPU] = (int64_t)l->cpu_ms,
        [END_OOM] = (int64_t)l->memory_max,     [END_OUTPUT] = (int64_t)l->output_max,
        [END_DISK] = (int64_t)l->workspace_max, [END_PIDS] = l->pids_max,
    };

    o->limit = rows[why].limit;
    o->limit_value = values[why];
}

static void say_reason(const struct run_result *r, const struct limits *l, struct call_outcome *o)
{
    const char *name = r->signal ? sigabbrev_np(r->signal) : NULL;

    if (r->reason == END_TIMEOUT)
        (void)snprintf(o->message, sizeof o->message, "Execution timed out after %g seconds",
                       (double)l->wall_ms / 1000);
    else if (r->reason == END_SIGNAL)
        (void)snprintf(o->message, sizeof o->message, "killed by signal SIG%s (%s)",
                       name ? name : "?", strsignal(r->signal));
    else if (r->reason == END_FAILED)
        (void)snprintf(o->message, sizeof o->message, "%s", r->fault);
    else
        (void)snprintf(o->message, sizeof o->message, "%s", rows[r->reason].words);
}

static void fail(struct call_outcome *o, const char *type, const char *message)
{
    o->status = CALL_ERROR;
    o->type = type;
    o->exit_code = o->exit_code ? o->exit_code : 1;
    (void)snprintf(o->message, sizeof o->message, "%s", message);
}

/* ---- a program that ended by itself ---- */

static bool has_error(const struct run_result *r)
{
    struct json_value v;
    struct err e;

    return r->error.n > 0 && json_parse(r->error.p, r->error.n, 0, &v, &e) == 0 &&
           v.type == JSON_OBJECT;
}

static void judge_exit(const struct run_result *r, const struct limits *l, struct call_outcome *o)
{
    struct json_value v;
    struct err e;
    char words[sizeof e.text + 80];

    if (r->result_too_long) {
        (void)snprintf(words, sizeof words,
                       "the returned value exceeds the limit of %" PRIu64 " bytes", l->result_max);
        fail(o, "ResultTooLarge", words);
        o->limit = "result_bytes";
        o->limit_value = (int64_t)l->result_max;
    } else if (has_error(r)) {
        fail(o, "Error", "");
        o->framed = true;
    } else if (r->frames_broken) {
        fail(o, "ResultError", "something that is not a result was written to the result channel");
    } else if (r->result.n == 0) {
        (void)snprintf(words, sizeof words,
                       "the program ended with exit code %d before the function returned",
                       r->exit_code);
        fail(o, "NoResult", words);
    } else if (json_parse(r->result.p, r->result.n, 0, &v, &e) < 0) {
        (void)snprintf(words, sizeof words, "the returned value is not valid JSON: %s", e.text);
        fail(o, "ResultError", words);
    } else if (r->exit_code != 0) {
        (void)snprintf(words, sizeof words,
                       "the program ended with exit code %d after the function had returned",
                       r->exit_code);
        fail(o, "ExitError", words);
    } else {
        o->status = CALL_SUCCESS;
    }
}

void call_outcome_reach(const struct run_result *r, const struct limits *l,
                        struct call_outcome *ret)
{
    struct call_outcome o = {.status = rows[r->reason].status,
                             .type = rows[r->reason].type,
                             .exit_code = rows[r->reason].exit_code};

    if (r->reason == END_EXIT || r->reason == END_SIGNAL)
        o.exit_code = r->exit_code;
    limit_fill(l, r->reason, &o);
    say_reason(r, l, &o);
    if (r->reason == END_EXIT)
        judge_exit(r, l, &o);
    *ret = o;
}

void call_outcome_fail(struct call_outcome *o, const struct err *e)
{
    static const char *const names[ERR_KIND_COUNT] = {
        [ERR_CALLER] = "ValueError", [ERR_DENIED] = "PermissionDeniedError"};
    const char *type = e->type ? e->type : names[e->kind];

    *o = (struct call_outcome){
        .status = CALL_ERROR, .exit_code = 1, .type = type ? type : "SandboxError"};
    (void)snprintf(o->message, sizeof o->message, "%s", e->text);
}

bool call_outcome_unfound(const struct call_outcome *o, const struct buf *error,
                          struct bytes function)
{
    struct json_value v, message;
    struct err ignored;
    char words[CALL_NAME_MAX + 32];

    if (!o->framed || !function.p || json_parse(error->p, error->n, 0, &v, &ignored) < 0 ||
        !json_get(v, "message", &message) || message.type != JSON_STRING)
        return false;
    (void)snprintf(words, sizeof words, "Function '%s' not found", function.p);
    return json_key_is(message, words);
}
