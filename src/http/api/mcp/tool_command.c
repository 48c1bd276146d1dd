/* SPDX-License-Identifier: MIT */
/*
 * run_command: a process of the sandbox that is followed until it ends, or for MCP_YIELD seconds;
 * then it goes on in the background.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/sandbox/process.h"
#include "http/api/mcp/run_report.h"
#include "http/api/mcp/tools.h"

enum {
    TIMEOUT_S = 120,
    TIMEOUT_MAX_S = 3600,
    ENV_MAX = 1000,
    PIECE_MAX = 64 << 10,
    MS_PER_S = 1000,
    MIB = 20, /* bits */
};

/* clang-format off */
#define AT(member) offsetof(struct tool_run_command, member)
static const struct shape_field fields[] = {
    {"command", SHAPE_STRING, SHAPE_REQUIRED, AT(command)},
    {"sandbox", SHAPE_STRING, 0, AT(sandbox)},
    {"cwd", SHAPE_STRING, 0, AT(cwd)},
    {"env", SHAPE_STRINGS, 0, AT(env), 0, ENV_MAX},
    {"stdin", SHAPE_STRING, 0, AT(input)},
    {"timeout_seconds", SHAPE_INT, 0, AT(timeout_s), 1, TIMEOUT_MAX_S},
    {"background", SHAPE_BOOL, 0, AT(background)},
};
#undef AT
const struct shape tool_run_command_shape = {fields, ARRAY_LEN(fields), 0, NULL};
/* clang-format on */

struct following {
    struct run_report *report;
    struct process *process; /* borrowed: kept by the sandbox; NULL: it has not begun */
    struct process_reader reader;
    struct event *yield; /* owned */
    uint64_t timeout_s;
    bool background;
    bool left; /* nobody waits for it: it is killed as soon as it has begun */
};

static void following_free(struct following *f)
{
    process_detach(&f->reader);
    if (f->yield)
        event_free(f->yield);
    free(f);
}

/* Its report is answered, or freed, by others. */
static struct run_report *part(struct following *f)
{
    struct run_report *r = f->report;

    r->t->x->worker = (struct mcp_worker){0};
    following_free(f);
    return r;
}

static void on_stop_report(void *user)
{
    struct run_report *r = user;
    struct tool_call *t = r->t;

    report_free(r);
    tool_free(t);
}

/* From now on only the report is left to stop. */
static void answer(struct following *f)
{
    struct run_report *r = part(f);

    r->t->x->worker = (struct mcp_worker){.stop = on_stop_report, .user = r};
    report_answer(r);
}

/* Nobody wants it any more: it and all that it started end. */
static void on_stop(void *user)
{
    struct following *f = user;
    struct run_report *r = f->report;
    struct tool_call *t = r->t;
    struct err e;

    report_free(r);
    tool_free(t);
    f->report = NULL;
    if (!f->process) {
        f->left = true; /* on_started() comes */
        return;
    }
    (void)!process_kill(f->process, &e);
    following_free(f);
}

static void judge(struct run_report *r, const struct process *p, uint64_t timeout_s)
{
    r->ran.exited = true;
    r->ran.exit_code = p->end.exit_code;
    r->ran.status = p->end.exit_code == 0 ? REPORT_SUCCESS : REPORT_FAILED;
    if (p->end.reason == END_TIMEOUT) {
        r->ran.status = REPORT_TIMEOUT;
        report_hint(r,
                    "ended after %llu s with everything it had started; raise timeout_seconds, or "
                    "use background: true",
                    (unsigned long long)timeout_s);
    } else if (p->end.reason == END_OOM) {
        r->ran.status = REPORT_ERROR;
        report_hint(r, "memory limit of the sandbox (%llu MiB): work in smaller parts",
                    (unsigned long long)(r->home->limits.memory_max >> MIB));
    } else if (p->end.reason != END_EXIT && p->end.reason != END_SIGNAL) {
        r->ran.status = REPORT_ERROR;
        report_hint(r, "it was ended: %s", end_reason_name(p->end.reason));
    }
    r->is_error = r->ran.status == REPORT_TIMEOUT || r->ran.status == REPORT_ERROR;
    if (r->ran.status != REPORT_SUCCESS)
        report_advise(r);
}

static void hand_over(struct following *f, const char *hint)
{
    f->report->ran.status = REPORT_RUNNING;
    (void)snprintf(f->report->ran.process, sizeof f->report->ran.process, "%s", f->process->id);
    report_hint(f->report, "%s", hint);
    answer(f);
}

static void on_yield(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    hand_over(user, "it still runs, in the background now; follow it with manage_process (action "
                    "output, wait_seconds)");
}

static void on_wake(void *user)
{
    struct following *f = user;
    struct bytering_piece piece;

    while (process_read(&f->reader, PIECE_MAX, &piece))
        if (piece.n > 0)
            report_output(f->report, (enum run_stream)piece.stream, piece.p, piece.n);
    if (!process_is_read(&f->reader))
        return;
    judge(f->report, f->process, f->timeout_s);
    answer(f);
}

static void refuse_start(struct following *f, const struct run_result *why)
{
    struct run_report *r = part(f);
    struct tool_call *t = r->t;
    const struct tool_run_command *a = t->arguments;
    bool no_directory = why->fault_at == RUN_NO_DIRECTORY;
    char cwd[256];

    (void)snprintf(cwd, sizeof cwd, "%.200s", a->cwd.p ? a->cwd.p : "");
    report_free(r);
    if (no_directory)
        tool_refuse(t, "make it first, or leave out cwd",
                    "there is no directory '%s' in the sandbox", cwd);
    else
        tool_refuse(t, "try again, or make another sandbox", "the command could not be started: %s",
                    why->fault_sys > 0 ? strerror(why->fault_sys) : "the sandbox has ended");
}

static void on_started(void *user, struct process *p, const struct run_result *why)
{
    struct following *f = user;
    struct timeval wait;
    struct err e;

    if (f->left) {
        if (p)
            (void)!process_kill(p, &e);
        following_free(f);
        return;
    }
    if (!p) {
        refuse_start(f, why);
        return;
    }
    f->process = p;
    if (f->background) {
        hand_over(f, "it runs in the background; manage_process with action output and this "
                     "process_id shows what it writes");
        return;
    }
    wait = (struct timeval){.tv_sec = (time_t)f->report->t->x->app->config.mcp_yield_s};
    f->yield = evtimer_new(f->report->t->x->app->base, on_yield, f);
    if (f->yield)
        (void)evtimer_add(f->yield, &wait);
    process_attach(p, &f->reader, 0, on_wake, f);
    on_wake(f);
}

static const char *doing(void *user)
{
    const struct following *f = user;
    const char *line = report_line(f->report);

    return line ? line : f->process ? "running" : "waiting for a place";
}

static void begin(struct following *f, const struct process_order *o)
{
    struct run_report *r = f->report;
    enum run_fault at = RUN_NO_START;
    struct err e;

    tool_wait_in(r->t, r->home, &(struct mcp_worker){.stop = on_stop, .doing = doing, .user = f});
    if (process_start(r->home, o, on_started, f, &at, &e) < 0) {
        struct tool_call *t;

        r = part(f);
        t = r->t;
        report_free(r);
        tool_refuse_err(t, "try again in a second, or end processes that are no longer needed", &e);
    }
}

static void run(struct tool_call *t, const struct tool_run_command *a, struct persistent *home)
{
    struct run_report *r = report_new(t, home);
    struct following *f = r ? calloc(1, sizeof *f) : NULL;
    uint64_t timeout_s = a->timeout_s > 0 ? (uint64_t)a->timeout_s : TIMEOUT_S;
    const struct process_order o = {
        .command = {.cmd = a->command,
                    .cwd = a->cwd,
                    .env = a->env.v,
                    .env_n = a->env.n,
                    .input = a->input,
                    .timeout_ms = a->background ? 0 : timeout_s * MS_PER_S},
        .lines = true,
    };

    if (!r)
        return;
    if (!f) {
        report_free(r);
        tool_refuse(t, "try again in a second", "out of memory");
        return;
    }
    f->report = r;
    f->timeout_s = timeout_s;
    f->background = a->background;
    begin(f, &o);
}

void tool_run_shell(struct tool_call *t, const struct tool_run_command *a)
{
    struct persistent *home = tool_sandbox(t, a->sandbox, TOOL_MAKES);

    if (home)
        run(t, a, home);
}

void tool_run_command(struct tool_call *t)
{
    tool_run_shell(t, t->arguments);
}
