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
    for (int i = 0; i < COMMAND_STREAMS; i++) {
        p->feeding = (enum command_stream)i;
        lines_end(&p->lines[i], on_line, p);
        lines_done(&p->lines[i]);
    }
    logring_end(&p->log);
}

/* ---- life ---- */

static void process_free(struct process *p)
{
    activity_end(&p->activity);
    shell_free(p->shell);
    for (int i = 0; i < COMMAND_STREAMS; i++)
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

/* The oldest finished one that nobody reads makes room. */
static void forget_old(struct persistent *home)
{
    struct process *p = TAILQ_FIRST(&home->processes), *next;

    for (; p && home->processes_n > PROCESSES_KEPT; p = next) {
        next = TAILQ_NEXT(p, link);
        if (!p->shell && TAILQ_EMPTY(&p->log.readers))
            process_forget(p);
    }
}

static void drop(struct activity *a)
{
    struct process *p = (struct process *)((char *)a - offsetof(struct process, activity));

    shell_free(take_ptr(&p->shell));
    activity_end(a);
    if (p->started) /* not listed yet: nobody else frees it */
        process_free(p);
}

/* ---- events ---- */

static void on_started(void *user, int pid)
{
    struct process *p = user;
    process_started_fn *started = take_ptr(&p->started);

    p->pid = pid;
    (void)clock_iso(p->started_at);
    TAILQ_INSERT_TAIL(&p->home->processes, p, link);
    p->home->processes_n++;
    forget_old(p->home);
    started(p->user, p, COMMAND_NO_START, 0);
}

static void on_failed(void *user, enum command_fault why, int sys)
{
    struct process *p = user;

    p->started(p->user, NULL, why, sys);
    process_free(p);
}

static void on_output(void *user, enum command_stream s, const char *bytes, size_t n)
{
    struct process *p = user;

    stamp(p);
    p->feeding = s;
    lines_feed(&p->lines[s], bytes, n, on_line, p);
}

static void on_exited(void *user, int code, bool killed)
{
    struct process *p = user;

    p->status = killed ? PROCESS_KILLED : code == 0 ? PROCESS_COMPLETED : PROCESS_FAILED;
    p->exit_code = code;
    (void)clock_iso(p->completed_at);
}

static void on_done(void *user, int code, bool timed_out)
{
    struct process *p = user;

    (void)code, (void)timed_out;
    shell_free(take_ptr(&p->shell));
    end_output(p);
    activity_end(&p->activity);
}

/* ---- use cases ---- */

static struct process *process_new(struct persistent *home, const struct shell_order *o)
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
    for (int i = 0; i < COMMAND_STREAMS; i++)
        p->lines[i] = LINES_INIT(LOGRING_LINE_MAX);
    logring_init(&p->log, &home->log_bytes);
    return p;
}

int process_start(struct persistent *home, const struct shell_order *o, process_started_fn *started,
                  void *user, enum command_fault *ret_why, struct err *e)
{
    const struct shell_events events = {on_started, on_failed, on_output, on_exited, on_done, NULL};
    struct shell_events own = events;
    struct process *p = process_new(home, o);

    *ret_why = COMMAND_NO_START;
    if (!p)
        return err_set(e, ERR_HOST, "no memory for a process");
    p->started = started;
    p->user = user;
    own.user = p;
    if (shell_start(home, o, &own, &p->shell, ret_why, e) < 0) {
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
    shell_kill(p->shell);
    return 0;
}

void processes_end(struct persistent *home)
{
    struct process *p = TAILQ_FIRST(&home->processes), *next;

    for (; p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (!p->shell)
            logring_end(&p->log);
    }
}

void processes_done(struct persistent *home)
{
    struct process *p;

    while ((p = TAILQ_FIRST(&home->processes)))
        process_forget(p);
}
