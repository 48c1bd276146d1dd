/* SPDX-License-Identifier: MIT */
#include "app/sandbox/process.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/daemon/app.h"
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
    struct process_lines *l = user;

    if (n > 0 && p[n - 1] == '\r')
        n--;
    logring_put(&l->log, (int)l->feeding, p, n, l->now);
}

static void stamp(struct process_lines *l)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    l->now = (struct logtime){t.tv_sec, (int32_t)t.tv_nsec};
}

static struct process_lines *lines_new(struct persistent *home)
{
    struct process_lines *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    for (int i = 0; i < RUN_STREAMS; i++)
        l->lines[i] = LINES_INIT(LOGRING_LINE_MAX);
    logring_init(&l->log, &home->processes.log_bytes);
    return l;
}

static void lines_free(struct process_lines *l)
{
    if (!l)
        return;
    for (int i = 0; i < RUN_STREAMS; i++)
        lines_done(&l->lines[i]);
    logring_done(&l->log);
    free(l);
}

static void lines_stop(struct process_lines *l)
{
    if (l->log.ended)
        return;
    stamp(l);
    for (int i = 0; i < RUN_STREAMS; i++) {
        l->feeding = (enum run_stream)i;
        lines_end(&l->lines[i], on_line, l);
        lines_done(&l->lines[i]);
    }
    logring_end(&l->log);
}

/* ---- output ---- */

static bool has_readers(const struct process *p)
{
    return !TAILQ_EMPTY(&p->output.readers) || (p->lines && !TAILQ_EMPTY(&p->lines->log.readers));
}

/* A wake may detach its own reader. */
static void wake_all(struct process *p)
{
    struct process_reader *r = TAILQ_FIRST(&p->output.readers), *next;

    for (; r; r = next) {
        next = TAILQ_NEXT(r, link);
        r->wake(r->user);
    }
}

static void arm_stalled(struct process *p)
{
    const struct timeval tv = {.tv_sec = PROCESS_STALL_MS / 1000,
                               .tv_usec = PROCESS_STALL_MS % 1000 * 1000};

    (void)event_add(p->output.stalled, &tv);
}

/* The process waits while the fastest of the readers that are waited for is too far behind. */
static void pace(struct process *p)
{
    const struct process_reader *r;
    uint64_t fastest = 0;
    bool any = false, full;

    TAILQ_FOREACH(r, &p->output.readers, link)
    if (!r->lags) {
        any = true;
        fastest = r->at > fastest ? r->at : fastest;
    }
    full = any && !p->output.ending && p->output.ring.next > fastest + PROCESS_BEHIND;
    if (full == p->output.paused || !p->run)
        return;
    p->output.paused = full;
    if (full) {
        command_pause(p->run);
        arm_stalled(p);
    } else {
        (void)event_del(p->output.stalled);
        command_resume(p->run);
    }
}

static void on_stalled(evutil_socket_t fd, short what, void *user)
{
    struct process *p = user;
    struct process_reader *r;

    (void)fd, (void)what;
    TAILQ_FOREACH(r, &p->output.readers, link)
    r->lags = r->at < p->output.ring.next;
    pace(p);
}

void process_attach(struct process *p, struct process_reader *r, uint64_t from,
                    void (*wake)(void *user), void *user)
{
    *r = (struct process_reader){.process = p, .wake = wake, .user = user};
    r->at = from < p->output.ring.next ? from : p->output.ring.next;
    TAILQ_INSERT_TAIL(&p->output.readers, r, link);
}

void process_detach(struct process_reader *r)
{
    struct process *p = take_ptr(&r->process);

    if (!p)
        return;
    TAILQ_REMOVE(&p->output.readers, r, link);
    pace(p);
}

bool process_read(struct process_reader *r, size_t most, struct bytering_piece *ret)
{
    struct process *p = r->process;

    *ret = bytering_read(&p->output.ring, r->at);
    ret->n = ret->n < most ? ret->n : most;
    if (ret->gap > 0)
        ret->n = 0;
    if (ret->gap == 0 && ret->n == 0)
        return false;
    r->at = ret->at + ret->n;
    r->lags = r->lags && r->at < p->output.ring.next;
    if (p->output.paused) {
        arm_stalled(p);
        pace(p);
    }
    return true;
}

bool process_is_read(const struct process_reader *r)
{
    const struct process *p = r->process;

    return p->output.closed && r->at >= p->output.ring.next;
}

static void close_output(struct process *p)
{
    if (p->output.closed)
        return;
    p->output.closed = true;
    wake_all(p);
}

/* ---- input ---- */

static void tell_writers(struct process *p, bool taken)
{
    struct process_writer *w;

    while ((w = TAILQ_FIRST(&p->writers))) {
        process_writer_leave(w);
        w->written(w->user, taken);
    }
}

enum run_input process_write(struct process *p, const void *bytes, size_t n,
                             struct process_writer *w, void (*written)(void *user, bool taken),
                             void *user)
{
    enum run_input r = p->run ? command_input(p->run, bytes, n) : RUN_INPUT_CLOSED;

    *w = (struct process_writer){.written = written, .user = user};
    if (r == RUN_INPUT_TAKEN && command_input_waiting(p->run) > 0) {
        w->process = p;
        TAILQ_INSERT_TAIL(&p->writers, w, link);
    }
    return r;
}

void process_writer_leave(struct process_writer *w)
{
    struct process *p = take_ptr(&w->process);

    if (p)
        TAILQ_REMOVE(&p->writers, w, link);
}

size_t process_input_waiting(const struct process *p)
{
    return p->run ? command_input_waiting(p->run) : 0;
}

int process_input_end(struct process *p)
{
    if (!p->run || p->terminal || command_input(p->run, NULL, 0) == RUN_INPUT_CLOSED)
        return -1;
    command_input_end(p->run);
    return 0;
}

/* ---- life ---- */

static void process_free(struct process *p)
{
    activity_end(&p->activity);
    command_free(p->run);
    lines_free(p->lines);
    bytering_done(&p->output.ring);
    if (p->output.stalled)
        event_free(p->output.stalled);
    free(p->command);
    free(p->config);
    free(p);
}

static void process_forget(struct process *p)
{
    TAILQ_REMOVE(&p->home->processes.list, p, link);
    p->home->processes.n--;
    process_free(p);
}

/* The oldest finished ones without a reader make room: for others, or with their bytes alone. */
static void forget_old(struct persistent *home)
{
    struct process *p = TAILQ_FIRST(&home->processes.list), *next;

    for (; p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (p->run || has_readers(p))
            continue;
        if (home->processes.n > PROCESSES_KEPT)
            process_forget(p);
        else if (home->processes.ring_bytes > BYTERING_SHARED_MAX / 2)
            bytering_done(&p->output.ring);
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
    TAILQ_INSERT_TAIL(&p->home->processes.list, p, link);
    p->home->processes.n++;
    forget_old(p->home);
    started(p->user, p, NULL);
}

static void on_output(void *user, enum run_stream s, const char *bytes, size_t n)
{
    struct process *p = user;

    if (p->output.closed)
        return;
    if (p->lines) {
        stamp(p->lines);
        p->lines->feeding = s;
        lines_feed(&p->lines->lines[s], bytes, n, on_line, p->lines);
    }
    bytering_put(&p->output.ring, (int)s, bytes, n);
    wake_all(p);
    pace(p);
}

static void note_end(struct process *p)
{
    const struct run_result *r = &p->run->result;

    p->end.exit_code = command_exit_code(p->run);
    p->end.signal = r->signal;
    p->end.reason = r->reason;
    p->end.at_us = clock_us();
    p->status = p->end.exit_code < 0    ? PROCESS_KILLED
                : p->end.exit_code == 0 ? PROCESS_COMPLETED
                                        : PROCESS_FAILED;
    (void)clock_iso(p->completed_at);
}

/* What it left in its streams is still told. What others write there from now on is read, so that
 * they do not wait, and thrown away. */
static void end_output(struct process *p)
{
    p->output.ending = true;
    pace(p);
    command_output_read(p->run);
    if (p->lines)
        lines_stop(p->lines);
    close_output(p);
}

/* The family with lines ends its log with the shell, as its SDKs know it. */
static void on_exited(void *user)
{
    struct process *p = user;

    note_end(p);
    if (p->signalled || p->lines)
        end_output(p);
}

static void on_input(void *user)
{
    struct process *p = user;

    tell_writers(p, command_input(p->run, NULL, 0) != RUN_INPUT_CLOSED);
}

static void on_done(void *user)
{
    struct process *p = user;

    if (p->started) {
        p->started(p->user, NULL, &p->run->result);
        process_free(p);
        return;
    }
    if (process_runs(p))
        note_end(p);
    (void)event_del(p->output.stalled);
    command_free(take_ptr(&p->run));
    if (p->lines)
        lines_stop(p->lines);
    tell_writers(p, false);
    close_output(p);
    activity_end(&p->activity);
}

/* ---- starting ---- */

static char *copy_text(struct bytes b)
{
    char *p = malloc(b.n + 1);

    if (!p)
        return NULL;
    if (b.n > 0)
        memcpy(p, b.p, b.n);
    p[b.n] = '\0';
    return p;
}

static struct process *process_new(struct persistent *home, const struct process_order *o)
{
    struct process *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->home = home;
    p->end.exit_code = -1;
    p->terminal = o->command.terminal;
    random_uuid4(p->id);
    TAILQ_INIT(&p->output.readers);
    TAILQ_INIT(&p->writers);
    bytering_init(&p->output.ring, &home->processes.ring_bytes);
    p->command = copy_text(o->command.cmd);
    p->command_n = o->command.cmd.n;
    p->config = o->config.n > 0 ? copy_text(o->config) : NULL;
    if (o->tag.n > 0 && o->tag.n <= PROCESS_TAG_MAX)
        memcpy(p->tag, o->tag.p, o->tag.n);
    p->lines = o->lines ? lines_new(home) : NULL;
    p->output.stalled = evtimer_new(home->all->app->base, on_stalled, p);
    if (p->command && p->output.stalled && (p->config || o->config.n == 0) &&
        (p->lines || !o->lines))
        return p;
    process_free(p);
    return NULL;
}

int process_start(struct persistent *home, const struct process_order *o,
                  process_started_fn *started, void *user, enum run_fault *ret_at, struct err *e)
{
    struct process *p;
    struct command_events events = {
        .started = on_started,
        .output = on_output,
        .exited = on_exited,
        .input = o->command.input_open ? on_input : NULL,
        .done = on_done,
    };

    *ret_at = RUN_NO_START;
    if (o->command.terminal && !(home->jail->traits & JAIL_FS))
        return err_set(e, ERR_CALLER,
                       "a terminal needs a sandbox with devices of its own; here it would be one "
                       "of the host");
    p = process_new(home, o);
    if (!p)
        return err_set(e, ERR_HOST, "no memory for a process");
    events.user = p;
    p->started = started;
    p->user = user;
    if (command_start(home, &o->command, &events, &p->run, ret_at, e) < 0) {
        process_free(p);
        return -1;
    }
    activity_begin(home, &p->activity, drop);
    return 0;
}

/* ---- finding ---- */

/* Among those that fit: one that runs, else the newest. */
static struct process *better(struct process *a, struct process *b)
{
    return a && process_runs(a) && !process_runs(b) ? a : b;
}

struct process *process_by_id(const struct persistent *home, const char *id, size_t n)
{
    struct process *p;

    TAILQ_FOREACH(p, &home->processes.list, link)
    if (strlen(p->id) == n && memcmp(p->id, id, n) == 0)
        return p;
    return NULL;
}

struct process *process_of_lines(const struct persistent *home, const char *id, size_t n)
{
    struct process *p = process_by_id(home, id, n);

    return p && p->lines ? p : NULL;
}

struct process *process_by_pid(const struct persistent *home, int64_t pid)
{
    struct process *p, *found = NULL;

    TAILQ_FOREACH(p, &home->processes.list, link)
    if (p->pid == pid)
        found = better(found, p);
    return found;
}

struct process *process_by_tag(const struct persistent *home, const char *tag, size_t n)
{
    struct process *p, *found = NULL;

    TAILQ_FOREACH(p, &home->processes.list, link)
    if (n > 0 && strlen(p->tag) == n && memcmp(p->tag, tag, n) == 0)
        found = better(found, p);
    return found;
}

/* ---- signals ---- */

int process_kill(struct process *p, struct err *e)
{
    if (p->status != PROCESS_RUNNING)
        return err_set(e, ERR_CALLER, "process is not running (status: %s)",
                       process_status_name(p->status));
    command_kill(p->run, END_CANCELLED);
    return 0;
}

int process_signal(struct process *p, int number, bool group)
{
    if (!process_runs(p) || !p->run || command_signal(p->run, number, group) < 0)
        return -1;
    p->signalled |= number == SIGKILL || number == SIGTERM;
    return 0;
}

int process_resize(struct process *p, uint32_t terminal)
{
    if (!process_runs(p) || !p->run || !p->terminal || command_resize(p->run, terminal) < 0)
        return -1;
    p->terminal = terminal;
    return 0;
}

/* ---- for the sandbox ---- */

void processes_end(struct persistent *home)
{
    struct process *p = TAILQ_FIRST(&home->processes.list), *next;

    for (; p; p = next) {
        next = TAILQ_NEXT(p, link);
        if (!p->run && p->lines)
            logring_end(&p->lines->log);
        if (!p->run)
            wake_all(p);
    }
}

void processes_done(struct persistent *home)
{
    struct process *p;

    while ((p = TAILQ_FIRST(&home->processes.list)))
        process_forget(p);
}
