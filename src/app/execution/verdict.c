/* SPDX-License-Identifier: MIT */
#include "app/execution/verdict.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"

enum { MIB = 1024 * 1024, US_PER_MS = 1000, MS_PER_S = 1000, EXIT_BAD_RESULT = 1 };

const char *exec_status_name(enum exec_status s)
{
    static const char *const names[] = {"success", "failed", "timeout", "error"};

    _Static_assert(ARRAY_LEN(names) == STATUS_COUNT, "every status has a name");
    return names[s];
}

/* ---- last words ---- */

/* Our lines begin at the beginning of a line. */
static void note_begin(struct run_result *r)
{
    if (r->err.n > 0 && r->err.p[r->err.n - 1] != '\n')
        (void)buf_putc(&r->err, '\n');
}

static void note_timeout(struct run_result *r, const struct limits *l)
{
    if (l->wall_ms % MS_PER_S == 0)
        (void)buf_printf(&r->err, "Execution timeout after %" PRIu64 " seconds\n",
                         l->wall_ms / MS_PER_S);
    else
        (void)buf_printf(&r->err, "Execution timeout after %.3f seconds\n",
                         (double)l->wall_ms / MS_PER_S);
}

static void note_cpu(struct run_result *r, const struct limits *l)
{
    (void)buf_printf(&r->err, "CPU time limit exceeded: %.3f seconds\n",
                     (double)l->cpu_ms / MS_PER_S);
}

static void note_oom(struct run_result *r, const struct limits *l)
{
    (void)buf_printf(&r->err, "Memory limit exceeded: %" PRIu64 " MiB\n", l->memory_max / MIB);
}

static void note_pids(struct run_result *r, const struct limits *l)
{
    (void)buf_printf(&r->err, "Process limit exceeded: %" PRIu32 " processes and threads\n",
                     l->pids_max);
}

static void note_cancelled(struct run_result *r, const struct limits *l)
{
    (void)l;
    (void)buf_puts(&r->err, "Execution cancelled\n");
}

static void note_shutdown(struct run_result *r, const struct limits *l)
{
    (void)l;
    (void)buf_puts(&r->err, "Execution ended: the service is shutting down\n");
}

static void note_disk(struct run_result *r, const struct limits *l)
{
    (void)l;
    (void)buf_printf(&r->err, "Execution ended: %s\n", r->fault);
}

static void note_failed(struct run_result *r, const struct limits *l)
{
    (void)l;
    (void)buf_printf(&r->err, "Sandbox failure: %s\n", r->fault);
}

/* ---- one row per reason ---- */

typedef void note_fn(struct run_result *r, const struct limits *l);

/* clang-format off */
static const struct {
    enum exec_status status;
    note_fn *note;
    const char *limit, *hint;
} rows[] = {
    [END_EXIT]      = {STATUS_FAILED,  NULL,           NULL,            NULL},
    [END_SIGNAL]    = {STATUS_FAILED,  NULL,           NULL,            NULL},
    [END_TIMEOUT]   = {STATUS_TIMEOUT, note_timeout,   "wall_time_ms",
                       "ask for more time with 'timeout', or do less in one execution"},
    [END_CPU]       = {STATUS_ERROR,   note_cpu,       "cpu_time_ms",
                       "the operator's CPU_TIME_MAX bounds CPU time"},
    [END_OOM]       = {STATUS_ERROR,   note_oom,       "memory_bytes",
                       "files in /workspace, /tmp and /dev/shm count as memory; the operator's "
                       "MAX_MEMORY_MB bounds it"},
    [END_OUTPUT]    = {STATUS_ERROR,   NULL,           "output_bytes",  NULL},
    [END_PIDS]      = {STATUS_ERROR,   note_pids,      "pids",
                       "threads count, too; the operator's PIDS_MAX bounds them"},
    [END_DISK]      = {STATUS_ERROR,   note_disk,      "workspace_bytes",
                       "delete files of the session, or its workspace; the operator's "
                       "SESSION_DISK_MB, SESSION_FILES and DISK_RESERVE_MB bound it"},
    [END_POLICY]    = {STATUS_ERROR,   NULL,           NULL,            NULL},
    [END_CANCELLED] = {STATUS_FAILED,  note_cancelled, NULL,            NULL},
    [END_SHUTDOWN]  = {STATUS_ERROR,   note_shutdown,  NULL,            NULL},
    [END_FAILED]    = {STATUS_ERROR,   note_failed,    NULL,            NULL},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(rows) == END_REASON_COUNT, "every reason has a row");

static void fill_limit(const struct run_result *r, const struct limits *l, struct verdict *v)
{
    v->observed = -1;
    if (r->reason == END_TIMEOUT) {
        v->limit_value = (int64_t)l->wall_ms;
        v->observed = (int64_t)((r->at.ended - r->at.running) / US_PER_MS);
    } else if (r->reason == END_CPU) {
        v->limit_value = (int64_t)l->cpu_ms;
        v->observed = r->usage.cpu_us < 0 ? -1 : r->usage.cpu_us / US_PER_MS;
    } else if (r->reason == END_OOM) {
        v->limit_value = (int64_t)l->memory_max;
        v->observed = r->usage.memory_peak;
    } else if (r->reason == END_PIDS) {
        v->limit_value = l->pids_max;
    }
}

/* ---- the returned value ---- */

static void result_fault(struct run_result *r, struct verdict *v, const char *words)
{
    buf_done(&r->result);
    note_begin(r);
    (void)buf_printf(&r->err, "%.400s\n", words);
    if (v->status != STATUS_SUCCESS)
        return;
    v->status = STATUS_FAILED;
    r->exit_code = EXIT_BAD_RESULT;
}

static void check_result(struct run_result *r, const struct limits *l, struct verdict *v)
{
    struct json_value value;
    struct err e;
    char words[sizeof e.text + 64];

    if (r->result_too_long) {
        (void)snprintf(words, sizeof words, "Result exceeds the limit of %" PRIu64 " bytes",
                       l->result_max);
        result_fault(r, v, words);
        v->limit = "result_bytes";
        v->limit_value = (int64_t)l->result_max;
        v->hint = "write large results to a file in the workspace and fetch it as an artifact";
    } else if (r->frames_broken && r->result.n == 0) {
        result_fault(r, v, "Result channel: something that is not a result was written to it");
    } else if (r->result.n > 0 && json_parse(r->result.p, r->result.n, 0, &value, &e) < 0) {
        (void)snprintf(words, sizeof words, "Result is not valid JSON: %s", e.text);
        result_fault(r, v, words);
    }
}

static void check_error(struct run_result *r)
{
    struct json_value value;
    struct err e;

    if (r->error.n > 0 &&
        (json_parse(r->error.p, r->error.n, 0, &value, &e) < 0 || value.type != JSON_OBJECT))
        buf_done(&r->error);
}

/* Before our own words are added: only what the program said counts. */
static void find_denials(const struct run_result *r, const struct limits *l, struct verdict *v)
{
    if (v->status == STATUS_SUCCESS)
        return;
    v->denied = denials_find(&(struct denial_facts){
        .said = {&r->err, &r->error},
          .usage = &r->usage, .signal = r->signal
    });
    if (!v->hint)
        v->hint = denials_hint(v->denied, DENIAL_EPHEMERAL);
    if (v->denied & BIT(DENIAL_RESULT) && !v->limit) { /* the wrapper has measured it */
        v->limit = "result_bytes";
        v->limit_value = (int64_t)l->result_max;
    }
}

void verdict_reach(struct run_result *r, const struct limits *l, struct verdict *ret)
{
    struct verdict v = {.status = rows[r->reason].status,
                        .limit = rows[r->reason].limit,
                        .hint = rows[r->reason].hint};

    if (r->reason == END_EXIT && r->exit_code == 0)
        v.status = STATUS_SUCCESS;
    fill_limit(r, l, &v);
    find_denials(r, l, &v);
    check_result(r, l, &v);
    check_error(r);
    if (rows[r->reason].note) {
        note_begin(r);
        rows[r->reason].note(r, l);
    }
    *ret = v;
}
