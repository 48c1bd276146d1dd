/* SPDX-License-Identifier: MIT */
#include "app/sandbox/background.h"

#include <string.h>
#include <time.h>

#include "base/random.h"

const char *process_status_name(enum process_status s)
{
    static const char *const names[] = {"running", "completed", "failed", "killed"};

    _Static_assert(ARRAY_LEN(names) == PROCESS_STATUS_COUNT, "every status has a name");
    return names[s];
}

/* ---- lines ---- */

static void on_line(void *user, const char *p, size_t n)
{
    struct process *pr = user;

    if (n > 0 && p[n - 1] == '\r')
        n--;
    logring_put(&pr->log, (int)pr->feeding, p, n, pr->now);
}

static void stamp(struct process *p)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    p->now = (struct logtime){t.tv_sec, (int32_t)t.tv_nsec};
}

static void end_output(struct process *p)
{
    stamp(p);
    for (int i = 0; i < RUN_STREAMS; i++) {
        p->feeding = (enum run_stream)i;
        lines_end(&p->lines[i], on_line, p);
        lines_done(&p->lines[i]);
    }
    logring_end(&p->log);
}

/* ---- life ---- */

static void process_free(struct process *p)
{
    activity_end(&p->activity);
    command_free(p->run);
    for (int i = 0; i < RUN_STREAMS; i++)
        lines_done(&p->lines[i]);
    logring_done(&p->log);
    free(p->command);
    free(p);
}

static void process_forget(struct process *p)
{
    TAILQ_REMOVE(&p->home->processes, p, link);
    p->home->processes_n--;
    process_free(p);
}

/* The oldest finished one without a reader makes room. */
static void forget_old(struct persistent *home)
{
    struct process *p = TAILQ_FIRST(&home->processes), *next;

    for (; p && home->processes_n > PROCESSES_KEPT; p = next) {
        next = TAILQ_NEXT(p, link);
        if (!p->run && TAILQ_EMPTY(&p->log.readers))
            process_forget(p);
    }
}

static void drop(struct activity *a)
{
    struct process *p = (struct process *)((char *)a - offsetof(struct process, activity));

    command_free(take_ptr(&p->run));
    activity_end(a);
    if (p->started) /* not listed yet */
        process_free(p);
}

/* ---- events ---- */

static void on_started(void *user)
{
    struct process *p = user;
    process_started_fn *started = take_ptr(&p->started);

    p->pid = p->run->result.pid;
    (void)clock_iso(p->started_at);
    TAILQ_INSERT_TAIL(&p->home->processes, p, link);
    p->home->processes_n++;
    forget_old(p->home);
    started(p->user, p, NULL);
}

static void on_output(void *user, enum run_stream s, const char *bytes, size_t n)
{
    struct process *p = user;

    stamp(p);
    p->feeding = s;
    lines_feed(&p->lines[s], bytes, n, on_line, p);
}

static void on_exited(void *user)
{
    struct process *p = user;

    p->exit_code = command_exit_code(p->run);
    p->status = p->exit_code < 0    ? PROCESS_KILLED
                : p->exit_code == 0 ? PROCESS_COMPLETED
                                    : PROCESS_FAILED;
    (void)clock_iso(p->completed_at);
}

static void on_done(void *user)
{
    struct process *p = user;

    if (p->started) {
        p->started(p->user, NULL, &p->run->result);
        process_free(p);
        return;
    }
    command_free(take_ptr(&p->run));
    end_output(p);
    activity_end(&p->activity);
}

/* ---- use cases ---- */

static struct process *process_new(struct persistent *home, const struct command_order *o)
{
    struct process *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->command = malloc(o->cmd.n + 1);
    if (!p->command) {
        free(p);
        return NULL;
    }
    memcpy(p->command, o->cmd.p, o->cmd.n + 1);
    p->command_n = o->cmd.n;
    p->home = home;
    p->exit_code = -1;
    random_uuid4(p->id);
    for (int i = 0; i < RUN_STREAMS; i++)
        p->lines[i] = LINES_INIT(LOGRING_LINE_MAX);
    logring_init(&p->log, &home->log_bytes);
    return p;
}

int process_start(struct persistent *home, const struct command_order *o,
                  process_started_fn *started, void *user, enum run_fault *ret_at, struct err *e)
{
    struct process *p = process_new(home, o);
    const struct command_events events = {
        .started = on_started,
        .output = on_output,
        .exited = on_exited,
        .done = on_done,
        .user = p,
    };

    *ret_at = RUN_NO_START;
    if (!p)
        return err_set(e, ERR_HOST, "no memory for a process");
    p->started = started;
    p->user = user;
    if (command_start(home, o, &events, &p->run, ret_at, e) < 0) {
        process_free(p);
        return -1;
    }
    activity_begin(home, &p->activity, drop);
    return 0;
}

struct process *process_find(const struct persistent *home, const char *id, size_t n)
{
    struct process *p;

    TAILQ_FOREACH(p, &home->processes, link)
    if (strlen(p->id) == n && memcmp(p->id, id, n) == 0)
        return p;
    return NULL;
}

int process_kill(struct process *p, struct err *e)
{
    if (p->status != PROCESS_RUNNING)
        return err_set(e, ERR_CALLER, "process is not running (status: %s)",
                       process_status_name(p->status));
    command_kill(p->run, END_CANCELLED);
    return 0;
}

void processes_end(struct persistent *home)
{
    struct process *p = TAILQ_FIRST(&home->processes), *next;

    for (; p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (!p->run)
            logring_end(&p->log);
    }
}

void processes_done(struct persistent *home)
{
    struct process *p;

    while ((p = TAILQ_FIRST(&home->processes)))
        process_forget(p);
}
