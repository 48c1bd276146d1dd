/* SPDX-License-Identifier: MIT */
/*
 * One run, from taking a sandbox to the last byte it left.
 *
 *   STARTING ─▶ RUNNING ──exited──▶ DRAINING ──ends of file──▶ SCANNING ─▶ DONE
 *       └─stop───┴─▶ STOPPING ─▶ KILLING ─▲ └──nothing to list───────────────▲
 *                                                                           │
 *   COUNTING stands before DRAINING where the jail's counters are not known yet, EXPLAINING before
 *   DONE where the text of a failure has not arrived. The table `states` has all moves.
 *
 * Killing is a request, exiting is a fact: a timeout records its reason, asks init to kill, after
 * KILL_MS the jail, and waits for the exit. Nothing outside init is alive after EXITED, so the
 * pipes end. If they do not within DRAIN_MS, what is in them then is all, as it is after a program
 * that said itself that it is done and has written everything.
 *
 * In a persistent sandbox (jail/inner.h) a helper has the place of init. There the program may end
 * before what it started: after MAIN_EXITED the run is LINGERING until its streams end, or EXITED
 * or a stop comes. The helper then stays with what is left.
 *
 * Callbacks of the loop change the state and then call settle(), whose last act may be the done
 * callback, after which the run may be gone. Nothing touches it afterwards.
 */
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/frame.h"
#include "core/port_net.h"
#include "core/port_run.h"
#include "proc/job.h"
#include "proc/run_inner.h"
#include "wire/wire.h"

enum {
    MAX_ERRNO = 4096,
    KILL_MS = 200,      /* init gets this long to kill everything, then the jail does it */
    GIVE_UP_MS = 5000,  /* a sandbox that has not died by then is not waited for any longer */
    TEXT_MS = 50,       /* for the launcher's text of a failure, which comes by another socket */
    DRAIN_MS = 250,     /* the ends of the pipes come at once: everything inside is dead */
    SCAN_MS = 5000,     /* between two files of the list */
    CLOSED_MS = 500,    /* between the end of a channel and the end of the program behind it */
    CPU_CHECK_MS = 100, /* how often a CPU limit is looked at */
    LISTEN_MS = 2,      /* what a program writes before is read then, or at its end */
    STARTED_MS = 4,     /* the same for one whose interpreter has to start first */
    LISTEN_RUNS = 8,    /* with so many at once, each of them takes that much longer */
    ZYGOTE_MS = 60000,  /* a runtime that is used for the first time has to start */
    JOB_PIECES = 3,     /* head, files, frames */
    USAGE_MS = 1,       /* between two questions for what was used */
    USAGE_ASKED_MAX = 100,
};

/* clang-format off */
static const unsigned states[] = { /* legal successors */
    [RUN_STARTING]   = BIT(RUN_RUNNING) | BIT(RUN_STOPPING) | BIT(RUN_COUNTING) | BIT(RUN_DRAINING),
    [RUN_RUNNING]    = BIT(RUN_LINGERING) | BIT(RUN_STOPPING) | BIT(RUN_COUNTING) | BIT(RUN_DRAINING),
    [RUN_LINGERING]  = BIT(RUN_STOPPING) | BIT(RUN_DRAINING),
    [RUN_STOPPING]   = BIT(RUN_KILLING) | BIT(RUN_COUNTING) | BIT(RUN_DRAINING),
    [RUN_KILLING]    = BIT(RUN_COUNTING) | BIT(RUN_DRAINING),
    [RUN_COUNTING]   = BIT(RUN_DRAINING),
    [RUN_DRAINING]   = BIT(RUN_SCANNING) | BIT(RUN_EXPLAINING) | BIT(RUN_DONE),
    [RUN_SCANNING]   = BIT(RUN_EXPLAINING) | BIT(RUN_DONE),
    [RUN_EXPLAINING] = BIT(RUN_DONE),
    [RUN_DONE]       = 0,
};
/* clang-format on */
_Static_assert(ARRAY_LEN(states) == RUN_STATE_COUNT, "every state has a row");

/* The program is not known to have exited. */
#define RUN_BEFORE_EXIT (RUN_LIVE | BIT(RUN_STOPPING) | BIT(RUN_KILLING))

static void settle(struct run *r);
static void enter_done(struct run *r);

static void run_move(struct run *r, enum run_state to)
{
    assert(states[r->state] & BIT(to));
    r->state = to;
}

static void arm(struct event *ev, uint64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    (void)event_add(ev, &tv);
}

/* Reads the control socket from now on. If that cannot be registered, the wall timer ends the run.
 */
static void ctl_watch(struct run *r)
{
    if (run_is(r, RUN_LIVE) && !r->files.paused && !event_pending(&r->ev.ctl, EV_READ, NULL))
        (void)event_add(&r->ev.ctl, NULL);
}

/* When to begin reading the output while the program runs. A program that stays is read from its
 * beginning (output_watch() in run_start()). */
static void output_watch_later(struct run *r)
{
    unsigned ms = r->sandbox.template == TEMPLATE_EXEC ? STARTED_MS : LISTEN_MS;

    if (!r->events.frame)
        arm(&r->ev.output, ms * (1 + r->engine->runs / LISTEN_RUNS));
}

/* A helper of a persistent sandbox has a limit of its own for the start. */
static void wall_arm(struct run *r, uint64_t more_ms)
{
    if (r->limits.wall_ms > 0 && (r->state == RUN_RUNNING || !r->sandbox.lives_on))
        arm(&r->ev.wall, r->limits.wall_ms + more_ms);
}

/* True when a failure has its text, or there was none. */
static bool failure_text_ready(struct run *r)
{
    struct jail *j = r->engine->jail;
    struct run_result *res = r->result;
    const char *text;

    if (res->reason != END_FAILED || res->fault[0])
        return true;
    text = j->ops->failure(j, &r->sandbox);
    (void)snprintf(res->fault, sizeof res->fault, "%s", text ? text : "");
    return res->fault[0] != '\0';
}

static void enter_done(struct run *r)
{
    if (failure_text_ready(r)) {
        run_move(r, RUN_DONE);
    } else if (r->state != RUN_EXPLAINING) {
        run_move(r, RUN_EXPLAINING);
        arm(&r->ev.timer, TEXT_MS);
    } else {
        (void)snprintf(r->result->fault, sizeof r->result->fault, "the sandbox ended unexpectedly");
        run_move(r, RUN_DONE);
    }
}

/* ---- results ---- */

void run_result_init(struct run_result *r, const struct limits *l)
{
    *r = (struct run_result){
        .reason = END_FAILED,
        .exit_code = -1,
        .out = BUF_INIT(l->output_max + RUN_NOTE_MAX),
        .err = BUF_INIT(l->output_max + RUN_NOTE_MAX),
        .result = BUF_INIT(l->result_max),
        .error = BUF_INIT(RUN_ERROR_MAX),
        .progress = BUF_INIT(RUN_PROGRESS_MAX),
        .compiled = BUF_INIT(RUN_COMPILED_MAX),
        .usage = USAGE_UNKNOWN,
    };
}

void run_result_done(struct run_result *r)
{
    buf_done(&r->out);
    buf_done(&r->err);
    buf_done(&r->result);
    buf_done(&r->error);
    buf_done(&r->progress);
    buf_done(&r->compiled);
}

/* ---- ending ---- */

static int64_t known(int64_t first, int64_t second)
{
    return first >= 0 ? first : second;
}

/* After a clean exit the counters of refused requests are not read. */
static bool ended_cleanly(const struct run *r, int status)
{
    return r->stop_reason == END_EXIT && status == 0 && r->result->error.n == 0;
}

/* The jail's own accounts cover everything inside; init's cover what it reaped, and count what a
 * copy shares. False: the former are not known yet. */
static bool usage_read(struct run *r, const struct init_msg *m)
{
    struct jail *j = r->engine->jail;
    struct usage *u = &r->result->usage;
    bool read = j->ops->usage(j, &r->sandbox, !m || !ended_cleanly(r, m->status), u);

    if (!m)
        return read;
    u->cpu_us = known(u->cpu_us, m->cpu_us);
    u->memory_peak = known(u->memory_peak, m->maxrss);
    u->io_read = known(u->io_read, m->io_read);
    u->io_write = known(u->io_write, m->io_write);
    /* It may have used some before its counters were known. */
    if (!r->sandbox.marked && u->cpu_us < m->cpu_us)
        u->cpu_us = m->cpu_us;
    if (m->oom > 0)
        u->oom_kills = known(u->oom_kills, 0) + m->oom;
    return read;
}

/* Why did it end? An explicit stop speaks first, then the limits of which the kernel told. */
static enum end_reason reason_of(const struct run *r, int status)
{
    const struct usage *u = &r->result->usage;
    bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;

    if (r->stop_reason != END_EXIT)
        return r->stop_reason;
    /* Also when the program outlived it: something inside was lost. A persistent sandbox counts for
     * all that runs in it, so there the program has to have been killed. */
    if (u->oom_kills > 0 && (!r->sandbox.lives_on || WIFSIGNALED(status)))
        return END_OOM;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return END_CPU;
    if (failed && u->pids_denied > 0)
        return END_PIDS;
    return WIFSIGNALED(status) ? END_SIGNAL : END_EXIT;
}

static bool reason_is_ordinary(enum end_reason why)
{
    return why == END_EXIT || why == END_SIGNAL || why == END_PIDS;
}

/* What a helper says after EXITED is for the jail. */
static void enter_draining(struct run *r)
{
    run_move(r, RUN_DRAINING);
    if (r->sandbox.lives_on)
        (void)event_del(&r->ev.ctl);
    r->frames.paused = false; /* nothing more will come */
    r->result->at.ended = clock_us();
    (void)event_del(&r->ev.wall);
    (void)event_del(&r->ev.cpu);
    arm(&r->ev.timer, DRAIN_MS);
}

static void enter_counting(struct run *r, const struct init_msg *m)
{
    if (r->state != RUN_COUNTING)
        run_move(r, RUN_COUNTING);
    r->exit.usage_asked++;
    r->exit.msg = *m;
    (void)event_del(&r->ev.wall);
    (void)event_del(&r->ev.cpu);
    arm(&r->ev.timer, USAGE_MS);
}

/* The program's end becomes part of the result. */
static void note_exit(struct run *r, int status)
{
    struct run_result *res = r->result;

    res->reason = reason_of(r, status);
    res->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    res->exit_code = r->stop_reason != END_EXIT ? -1
                     : WIFSIGNALED(status)      ? 128 + WTERMSIG(status)
                                                : WEXITSTATUS(status);
    if (r->events.exited && !r->exit.told && res->reason != END_FAILED)
        r->events.exited(r->events.user);
    r->exit.told = true;
}

static void on_exited(struct run *r, const struct init_msg *m)
{
    struct run_result *res = r->result;

    if (r->state == RUN_LINGERING) {
        (void)usage_read(r, m);
        enter_draining(r);
        return;
    }
    if (m->token != 0 || !run_is(r, RUN_BEFORE_EXIT | BIT(RUN_COUNTING)))
        return;
    if (!usage_read(r, m) && r->exit.usage_asked < USAGE_ASKED_MAX) {
        enter_counting(r, m);
        return;
    }
    note_exit(r, m->status);
    r->files.scan = m->arg != 0 && r->events.file && !r->events.frame &&
                    (r->plan.scan_all || reason_is_ordinary(res->reason));
    res->scanned = m->arg == 0;
    r->exit.pipes_final = m->size != 0;
    enter_draining(r);
}

static int output_watch(struct run *r);

/* A persistent sandbox: what holds the streams is listened to until they end. */
static void on_main_exited(struct run *r, const struct init_msg *m)
{
    if (!r->sandbox.lives_on || r->state != RUN_RUNNING)
        return; /* a helper that was asked to stop reports EXITED */
    (void)usage_read(r, m);
    note_exit(r, m->status);
    run_move(r, RUN_LINGERING);
    (void)event_del(&r->ev.output);
    if (output_watch(r) < 0)
        enter_draining(r);
}

/* A tenant can kill its helper; then pid 1 kills everything that was below it. */
static void on_helper_death(struct run *r)
{
    const struct init_msg killed = {
        .verb = INIT_EXITED, .status = SIGKILL, .cpu_us = -1, .maxrss = -1, .io_read = -1};
    struct jail *j = r->engine->jail;
    const char *why = j->ops->failure(j, &r->sandbox);

    if (r->state == RUN_STARTING && why[0]) {
        r->stop_reason = END_FAILED;
        r->result->fault_at = RUN_LOST;
        (void)snprintf(r->result->fault, sizeof r->result->fault, "%s", why);
    } else if (r->state == RUN_STARTING) {
        run_move(r, RUN_RUNNING);
        if (r->events.ready)
            r->events.ready(r->events.user);
    }
    on_exited(r, &killed);
}

/* Init has closed its control socket. No list of files will be asked for: the socket is shut. */
static void on_death(struct run *r)
{
    struct run_result *res = r->result;

    (void)event_del(&r->ev.ctl);
    (void)shutdown(r->sandbox.ctl, SHUT_RDWR);
    if (r->sandbox.lives_on) {
        on_helper_death(r);
        return;
    }
    if (r->state == RUN_COUNTING) {
        r->exit.usage_asked = USAGE_ASKED_MAX;
        on_exited(r, &r->exit.msg);
    }
    if (r->state == RUN_SCANNING)
        enter_done(r);
    if (!run_is(r, RUN_BEFORE_EXIT))
        return;
    (void)usage_read(r, NULL);
    if (r->stop_reason != END_EXIT)
        res->reason = r->stop_reason;
    else
        res->reason = res->usage.oom_kills > 0 ? END_OOM : END_FAILED;
    if (res->reason == END_OOM) {
        res->signal = SIGKILL;
        res->exit_code = 128 + SIGKILL;
    }
    enter_draining(r);
}

/* ---- init's messages ---- */

static void on_ready(struct run *r, const struct init_msg *m)
{
    if (r->state != RUN_STARTING)
        return;
    run_move(r, RUN_RUNNING);
    r->result->pid = m->pid;
    r->result->at.running = clock_us();
    wall_arm(r, 0); /* building the sandbox was not the program's time */
    if (r->sandbox.lives_on)
        (void)event_del(&r->ev.timer);
    output_watch_later(r);
    if (r->events.ready)
        r->events.ready(r->events.user);
}

static void on_scanned(struct run *r, const struct init_msg *m)
{
    if (r->files.live && run_is(r, RUN_LIVE)) {
        r->files.live = false;
        r->events.scanned(r->events.user, m->arg > 0 ? m->arg : 0);
        return;
    }
    if (r->state != RUN_SCANNING)
        return;
    r->result->files_left_out += m->arg > 0 ? m->arg : 0;
    r->result->scanned = true;
    enter_done(r);
}

static void on_failed(struct run *r, const struct init_msg *m)
{
    if (r->state == RUN_SCANNING) {
        enter_done(r);
        return;
    }
    if (!run_is(r, RUN_LIVE))
        return;
    (void)snprintf(r->result->fault, sizeof r->result->fault, "%.*s", (int)m->name_n,
                   r->engine->room->ctl.name);
    r->result->fault_sys = m->arg > 0 && m->arg < MAX_ERRNO ? (int)m->arg : 0;
    if (r->sandbox.lives_on)
        r->result->fault_at = m->status == HELP_OP_DIRECTORY ? RUN_NO_DIRECTORY
                              : m->arg == EAGAIN             ? RUN_BUSY
                                                             : RUN_NO_START;
    run_stop(r, END_FAILED);
}

/* A helper says READY before anything else. */
static void on_exit_message(struct run *r, const struct init_msg *m)
{
    if (!r->sandbox.lives_on || r->state != RUN_STARTING)
        on_exited(r, m);
}

static void on_signalled(struct run *r, const struct init_msg *m)
{
    (void)m;
    if (run_is(r, RUN_LIVE) && r->events.interrupted)
        r->events.interrupted(r->events.user);
}

static void on_put(struct run *r, const struct init_msg *m)
{
    if (run_is(r, RUN_LIVE) && r->events.put)
        r->events.put(r->events.user, (int)m->arg);
}

static const struct {
    uint32_t verb;
    void (*handle)(struct run *r, const struct init_msg *m);
} verbs[] = {
    {INIT_READY,       on_ready       },
    {INIT_EXITED,      on_exit_message},
    {INIT_MAIN_EXITED, on_main_exited },
    {INIT_SCANNED,     on_scanned     },
    {INIT_FAILED,      on_failed      },
    {INIT_SIGNALLED,   on_signalled   },
    {INIT_PUT_DONE,    on_put         },
};

static void on_file(struct run *r, const struct init_msg *m, int *fd)
{
    struct run_file f = {.name = r->engine->room->ctl.name,
                         .name_n = m->name_n,
                         .mtime_s = m->mtime_s,
                         .mtime_ns = m->mtime_ns,
                         .mode = m->mode,
                         .fd = *fd,
                         .untouched = *fd < 0};
    struct stat st;

    if (r->state != RUN_SCANNING && !(r->files.live && run_is(r, RUN_LIVE)))
        return;
    if (!f.untouched && fstat(f.fd, &st) < 0) {
        r->result->files_left_out++;
        return;
    }
    if (!f.untouched && !S_ISREG(st.st_mode))
        return;
    if (r->state == RUN_SCANNING)
        arm(&r->ev.timer, SCAN_MS);
    r->events.file(r->events.user, &f);
    *fd = f.fd;
}

/* The job was held back until the gate has every listener. */
static void on_listening(struct run *r, const struct init_msg *m, int *fd)
{
    if (r->net.awaited == 0 || !run_is(r, RUN_LIVE))
        return;
    if (*fd < 0) {
        (void)snprintf(r->result->fault, sizeof r->result->fault,
                       "listener on port %d of the sandbox: %s", (int)(m->arg & UINT16_MAX),
                       strerror(m->status));
        run_stop(r, END_FAILED);
        return;
    }
    r->net.awaited--;
    r->net.gate.listening(r->net.gate.user, (uint32_t)m->arg, take_fd(fd));
    if (r->net.awaited == 0 && run_is(r, RUN_LIVE))
        feed_release(&r->job_feed, r->engine->base);
}

/* True when there may be more to read. */
static bool ctl_read(struct run *r)
{
    struct init_msg *m = &r->engine->room->ctl.msg;
    cleanup_close int fd = -1;
    size_t fds_n = 1;
    ssize_t n =
        fd_recv(r->sandbox.ctl, &r->engine->room->ctl, sizeof *m + INIT_NAME_MAX, &fd, &fds_n);

    if (n == -EAGAIN || n == -EINTR)
        return false;
    if (n == -ECONNRESET) /* a message of ours was not read; its own are still there */
        return true;
    if (n < (ssize_t)sizeof *m || m->name_n != (size_t)n - sizeof *m) {
        on_death(r);
        return false;
    }
    if (fds_n == 0)
        fd = -1;
    r->engine->room->ctl.name[m->name_n] = '\0';
    if (m->verb == INIT_ENTRY && (fd >= 0 || (m->arg && r->plan.lazy)))
        on_file(r, m, &fd);
    if (m->verb == INIT_LISTENING)
        on_listening(r, m, &fd);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (verbs[i].verb == m->verb)
            verbs[i].handle(r, m);
    }
    return r->state != RUN_DONE && !r->files.paused &&
           !(r->sandbox.lives_on && r->state == RUN_DRAINING);
}

static void ctl_on_readable(evutil_socket_t fd, short what, void *user)
{
    struct run *r = user;

    (void)fd, (void)what;
    while (ctl_read(r))
        ;
    settle(r);
}

static int ctl_send(struct run *r, enum init_verb verb, int64_t arg)
{
    struct init_msg m = {.verb = verb, .arg = arg};

    return fd_send(r->sandbox.ctl, &m, sizeof m, NULL, 0);
}

/* ---- frames ---- */

static void replace(struct buf *b, const char *p, size_t n)
{
    buf_clear(b);
    (void)buf_put(b, p, n);
}

/*
 * The program's own frame that it exits and left no file. If it is the only process inside, init
 * would report the same and is not waited for. That is counted outside: no number
 * that the program sends is believed. A program that sends this and keeps running is killed with
 * its sandbox, right after the answer.
 */
static void on_self_exit(struct run *r, const char *p, size_t n)
{
    struct jail *j = r->engine->jail;
    struct init_msg m;

    if (!r->plan.own_exit || n != FRAME_LEFT_N || !run_is(r, RUN_LIVE))
        return;
    if (!j->ops->alone(j, &r->sandbox)) {
        (void)shutdown(r->sandbox.job,
                       SHUT_WR); /* it need not wait for us; init reports its exit */
        return;
    }
    m = init_left(p[0]);
    r->exit.self = true;
    on_exited(r, &m);
}

/* Only the first frame is certainly our wrapper's: no code of the tenant ran before it. */
static void on_compiled(struct run *r, bool first, const char *p, size_t n)
{
    if (first && r->plan.compiles)
        replace(&r->result->compiled, p, n);
}

static void on_frame(void *user, char kind, const char *p, size_t n)
{
    struct run *r = user;
    bool first = !r->frames.any;

    if (kind == FRAME_PLACED) {
        r->files.placed = true;
        return;
    }
    r->frames.any = true;
    if (kind == FRAME_COMPILED) {
        on_compiled(r, first, p, n);
        return;
    }
    if (kind == FRAME_LEFT) {
        on_self_exit(r, p, n);
        return;
    }
    if (r->events.frame) {
        r->events.frame(r->events.user, kind, p, n);
        return;
    }
    switch (kind) {
    case FRAME_RESULT:
        replace(&r->result->result, p, n);
        break;
    case FRAME_ERROR:
        replace(&r->result->error, p, n);
        break;
    case FRAME_PROGRESS:
        if (n > RUN_PROGRESS_MAX)
            break;
        replace(&r->result->progress, p, n);
        if (r->events.progress && !r->result->progress.failed)
            r->events.progress(r->events.user, p, n);
        break;
    case FRAME_ITEM:
        /* Also when init reported the exit before the last frames were read. */
        if (r->events.item && run_is(r, RUN_LIVE | BIT(RUN_COUNTING) | BIT(RUN_DRAINING)))
            r->events.item(r->events.user, p, n);
        break;
    default:
        break;
    }
}

static void job_close(struct run *r)
{
    feed_done(&r->job_feed);
    (void)event_del(&r->ev.job);
    (void)close(take_fd(&r->sandbox.job));
    ctl_watch(r); /* init reports the exit */
}

/* Reads until the stream is empty, its end, the last frame, or the turn is over: then it returns
 * true. */
static bool job_read(struct run *r)
{
    struct pump_scratch *s = &r->engine->room->scratch;
    size_t turn = 0;

    while (turn < PUMP_TURN && !r->frames.paused && !r->exit.self) {
        ssize_t n = read(r->sandbox.job, s->bytes, sizeof s->bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n <= 0) {
            job_close(r);
            if (r->events.frame && run_is(r, RUN_LIVE))
                arm(&r->ev.timer, CLOSED_MS);
            return false;
        }
        turn += (size_t)n;
        if (r->frames.reader.broken)
            continue; /* it stays broken; the rest is only drained */
        if (frame_reader_feed(&r->frames.reader, s->bytes, (size_t)n, on_frame, r) < 0 &&
            r->events.frame)
            run_stop(r, END_POLICY); /* frames behind a broken one cannot be found */
    }
    return !r->exit.self;
}

static void job_on_readable(evutil_socket_t fd, short what, void *user)
{
    struct run *r = user;

    (void)fd, (void)what;
    (void)job_read(r);
    settle(r);
}

/* ---- output ---- */

/* True when there is more than one turn takes. */
static bool output_read(struct run *r, struct capture *c)
{
    size_t before = c->keep->n;
    bool more = capture_read(c, &r->engine->room->scratch);

    if (r->events.output && c->keep->n != before)
        r->events.output(r->events.user);
    return more;
}

static void out_on_readable(evutil_socket_t fd, short what, void *user)
{
    struct run *r = user;

    (void)fd, (void)what;
    (void)output_read(r, &r->out);
    settle(r);
}

static void err_on_readable(evutil_socket_t fd, short what, void *user)
{
    struct run *r = user;

    (void)fd, (void)what;
    (void)output_read(r, &r->err);
    settle(r);
}

/* ---- timers ---- */

static void on_wall(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    run_stop(user, END_TIMEOUT);
}

/* In which order pieces of both streams came is not known. */
static void output_sink(void *user, const struct capture *c, const char *p, size_t n)
{
    struct run *r = user;

    r->events.bytes(r->events.user, c == &r->out ? RUN_OUT : RUN_ERR, p, n);
}

static int output_watch(struct run *r)
{
    if (capture_start(&r->out, r->engine->base, out_on_readable, r) < 0)
        return -1;
    return capture_start(&r->err, r->engine->base, err_on_readable, r);
}

/* Delayed: most runs finish before it, which saves three calls of epoll_ctl. */
static void on_output_watch(evutil_socket_t fd, short what, void *user)
{
    struct run *r = user;

    (void)fd, (void)what;
    ctl_watch(r);
    if (output_watch(r) == 0)
        return;
    (void)snprintf(r->result->fault, sizeof r->result->fault, "no memory to watch a sandbox");
    run_stop(r, END_FAILED);
}

static void on_cpu(evutil_socket_t fd, short what, void *user)
{
    struct run *r = user;
    struct usage u = USAGE_UNKNOWN;

    (void)fd, (void)what;
    (void)r->engine->jail->ops->usage(r->engine->jail, &r->sandbox, false, &u);
    if (u.cpu_us >= 0 && (uint64_t)u.cpu_us > r->limits.cpu_ms * 1000)
        run_stop(r, END_CPU);
    else
        arm(&r->ev.cpu, CPU_CHECK_MS);
}

/* A process that was forked beside it and has not run since may hold a copy of a pipe for longer
 * than DRAIN_MS. It writes nothing, and the files can still be listed. */
static void draining_expired(struct run *r)
{
    if (r->output_paused)
        return; /* run_output_resume() arms the timer again */
    if (r->exit.pipes_final) {
        enter_done(r);
        return;
    }
    r->exit.pipes_final = true;
    arm(&r->ev.timer, DRAIN_MS);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct run *r = user;
    struct jail *j = r->engine->jail;

    (void)fd, (void)what;
    switch (r->state) {
    case RUN_STARTING:
    case RUN_RUNNING:
        if (r->state == RUN_STARTING && r->sandbox.lives_on)
            r->result->fault_at = RUN_BUSY; /* its helper was stopped, or does not get to run */
        /* Else a program that stays has closed its channel and did not end. */
        run_stop(r, r->result->fault_at == RUN_BUSY ? END_FAILED : END_POLICY);
        break;
    case RUN_STOPPING:
        run_move(r, RUN_KILLING);
        j->ops->kill(j, &r->sandbox);
        arm(&r->ev.timer, GIVE_UP_MS);
        break;
    case RUN_KILLING:
        on_death(r);
        break;
    case RUN_COUNTING:
        on_exited(r, &r->exit.msg);
        break;
    case RUN_DRAINING:
        draining_expired(r);
        break;
    case RUN_SCANNING:
    case RUN_EXPLAINING:
        enter_done(r);
        break;
    case RUN_LINGERING:
    case RUN_DONE:
    case RUN_STATE_COUNT:
        break;
    }
    settle(r);
}

/* ---- the machine ---- */

static bool streams_open(const struct run *r)
{
    return capture_is_open(&r->out) || capture_is_open(&r->err) || r->sandbox.job >= 0;
}

/* Reads what is left in the pipes. True: there is more than one turn takes. */
static bool drain(struct run *r)
{
    bool more = capture_is_open(&r->out) && output_read(r, &r->out);

    more |= capture_is_open(&r->err) && output_read(r, &r->err);
    more |= r->sandbox.job >= 0 && job_read(r);
    return more;
}

static void enter_scanning(struct run *r)
{
    r->result->scanned &= r->files.placed;
    if (!r->files.scan || !r->files.placed || ctl_send(r, INIT_SCAN, r->plan.scan_all) < 0) {
        enter_done(r);
        return;
    }
    run_move(r, RUN_SCANNING);
    arm(&r->ev.timer, SCAN_MS);
}

static void events_del(struct run *r)
{
    struct event *all[] = {&r->ev.ctl,    &r->ev.job,   &r->ev.wall,
                           &r->ev.output, &r->ev.timer, &r->ev.cpu};

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        (void)event_del(all[i]);
    feed_done(&r->job_feed);
    feed_done(&r->in_feed);
    capture_done(&r->out);
    capture_done(&r->err);
}

/* Moves on as far as facts allow. May end in done(): the run must not be touched afterwards. */
static void settle(struct run *r)
{
    if (r->state == RUN_LINGERING && !capture_is_open(&r->out) && !capture_is_open(&r->err))
        enter_draining(r);
    if (r->state == RUN_DRAINING && !r->output_paused) {
        bool more = drain(r);

        if ((r->exit.pipes_final && !more) || !streams_open(r))
            enter_scanning(r);
    }
    if (r->state != RUN_DONE)
        return;
    events_del(r);
    if (r->files.scan && !r->result->scanned && r->result->files_left_out == 0)
        r->result->files_left_out = 1; /* the number is not known: at least one */
    r->result->frames_broken = r->frames.reader.broken && !r->frames.reader.too_long;
    r->result->result_too_long = r->frames.reader.too_long;
    r->events.done(r->events.user);
}

/* ---- commands ---- */

void run_stop(struct run *r, enum end_reason why)
{
    if (!run_is(r, RUN_LIVE | BIT(RUN_LINGERING)))
        return;
    ctl_watch(r);
    r->stop_reason = why;
    run_move(r, RUN_STOPPING);
    (void)event_del(&r->ev.wall);
    (void)event_del(&r->ev.cpu);
    arm(&r->ev.timer, ctl_send(r, INIT_STOP, 0) < 0 ? 0 : KILL_MS);
}

void run_output_pause(struct run *r)
{
    r->output_paused = true;
    capture_pause(&r->out);
    capture_pause(&r->err);
}

void run_output_resume(struct run *r)
{
    if (!r->output_paused)
        return;
    r->output_paused = false;
    capture_resume(&r->out);
    capture_resume(&r->err);
    if (r->state == RUN_DRAINING)
        arm(&r->ev.timer, 0); /* everything inside is dead: what is in the pipes is all */
}

void run_files_pause(struct run *r)
{
    r->files.paused = true;
    (void)event_del(&r->ev.ctl);
    if (r->state == RUN_SCANNING)
        (void)event_del(&r->ev.timer);
}

void run_files_resume(struct run *r)
{
    if (!r->files.paused)
        return;
    r->files.paused = false;
    if (r->state == RUN_DONE)
        return;
    (void)event_add(&r->ev.ctl, NULL);
    if (r->state == RUN_SCANNING)
        arm(&r->ev.timer, SCAN_MS);
}

static int files_join(const struct plan *p, struct buf *out, struct err *e)
{
    for (size_t i = 0; i < p->files_n; i++)
        out->max += p->files[i].content.n;
    for (size_t i = 0; i < p->files_n; i++)
        (void)buf_put(out, p->files[i].content.p, p->files[i].content.n);
    return out->failed ? err_set(e, ERR_HOST, "no memory for the files of the job") : 0;
}

/* A program's own report of its exit counts only where nothing outlives the run that another
 * process of it could still write to. */
static bool may_report_own_exit(const struct run *r, const struct plan *p)
{
    return !r->sandbox.lives_on && !p->workspace && !p->scan_all && !p->lazy && !p->gate &&
           !p->dirs && !r->events.frame && r->engine->jail->traits & JAIL_MEMORY &&
           r->engine->jail->traits & JAIL_PIDS;
}

static int gate_ask(struct run *r, const struct net_gate *g)
{
    r->net.gate = *g;
    while (r->net.awaited < g->ports_n)
        if (ctl_send(r, INIT_LISTEN, g->ports[r->net.awaited++]) < 0)
            return -1;
    return 0;
}

/* Head, files and frames in as few system calls as the kernel allows; usually one. */
static int job_send(struct run *r, const struct plan *p, struct err *e)
{
    struct event_base *base = r->engine->base;
    const struct job_for to = {.traits = r->engine->jail->traits,
                               .warmed = r->sandbox.template != TEMPLATE_EXEC,
                               .leaves = r->plan.own_exit,
                               .calm = r->engine->runs == 1};
    cleanup_with(buf_done) struct buf head = BUF_INIT(JOB_STRINGS_MAX * 2);
    cleanup_with(buf_done) struct buf files = BUF_INIT(0);

    if (job_encode(p, &to, &head, e) < 0 || files_join(p, &files, e) < 0)
        return -1;
    struct iovec pieces[JOB_PIECES] = {
        {.iov_base = head.p,                         .iov_len = head.n     },
        {.iov_base = files.p,                        .iov_len = files.n    },
        {.iov_base = (void *)(uintptr_t)p->frames.p, .iov_len = p->frames.n},
    };
    if (p->gate && gate_ask(r, p->gate) < 0)
        return err_set(e, ERR_HOST, "a sandbox cannot be told to listen on its loopback");
    if (p->gate)
        feed_hold(&r->job_feed, &r->sandbox.job, pieces, JOB_PIECES);
    else
        feed_start(&r->job_feed, base, &r->sandbox.job, false, pieces, JOB_PIECES);
    struct iovec input = {.iov_base = (void *)(uintptr_t)p->input.p, .iov_len = p->input.n};
    feed_start(&r->in_feed, base, &r->sandbox.in, !p->input_open, &input, 1);
    r->in_feed.idle = r->events.input;
    r->in_feed.user = r->events.user;
    return 0;
}

static void events_assign(struct run *r)
{
    struct event_base *base = r->engine->base;
    struct run_result *res = r->result;

    r->out = (struct capture){.fd = &r->sandbox.out,
                              .keep = &res->out,
                              .keep_max = r->limits.output_max,
                              .truncated = &res->out_truncated};
    r->err = (struct capture){.fd = &r->sandbox.err,
                              .keep = &res->err,
                              .keep_max = r->limits.output_max,
                              .truncated = &res->err_truncated};
    if (r->events.bytes) {
        r->out.sink = r->err.sink = output_sink;
        r->out.user = r->err.user = r;
    }
    (void)event_assign(&r->ev.ctl, base, r->sandbox.ctl, EV_READ | EV_PERSIST, ctl_on_readable, r);
    (void)event_assign(&r->ev.job, base, r->sandbox.job, EV_READ | EV_PERSIST, job_on_readable, r);
    (void)evtimer_assign(&r->ev.wall, base, on_wall, r);
    (void)evtimer_assign(&r->ev.output, base, on_output_watch, r);
    (void)evtimer_assign(&r->ev.timer, base, on_timer, r);
    (void)evtimer_assign(&r->ev.cpu, base, on_cpu, r);
}

/* Copies of warmed interpreters report their exit before init does: the control socket is watched
 * only if that takes longer. */
static bool reports_own_exit(const struct run *r)
{
    return r->plan.own_exit && r->state == RUN_RUNNING && r->sandbox.template != TEMPLATE_EXEC &&
           !template_is_prestarted(r->sandbox.template);
}

/* Failing to register an event is an error: the run would only end by its wall timer. The channel
 * of a program without frames is not watched; why it could not be started is read at its end. */
static int watch(struct run *r, bool has_frames, struct err *e)
{
    if ((!reports_own_exit(r) && event_add(&r->ev.ctl, NULL) < 0) ||
        (has_frames && event_add(&r->ev.job, NULL) < 0) || (r->events.frame && output_watch(r) < 0))
        return err_set(e, ERR_HOST, "no memory to watch a sandbox");
    if (r->state == RUN_RUNNING)
        output_watch_later(r); /* else when it is */
    wall_arm(r, r->start_ms);
    if (r->sandbox.start_ms > 0)
        arm(&r->ev.timer, r->sandbox.start_ms);
    if (r->limits.cpu_ms > 0)
        arm(&r->ev.cpu, CPU_CHECK_MS);
    return 0;
}

int run_start(struct run_engine *g, const struct plan *p, struct run_result *result,
              const struct run_events *events, struct run **ret, struct err *e)
{
    struct sandbox_spec spec = {
        .template = p->template,
        .limits = &p->limits,
        .workspace = p->workspace,
        .dirs = p->dirs,
        .dependencies = p->dependencies,
        .lazy = p->lazy,
        .terminal = p->terminal,
    };
    cleanup_with(run_freep) struct run *r = calloc(1, sizeof *r);

    if (!r)
        return err_set(e, ERR_HOST, "no memory for a run");
    r->engine = g;
    g->runs++;
    r->events = *events;
    r->result = result;
    r->limits = p->limits;
    r->files.placed = !p->scan_all || p->files_n == 0;
    r->plan.scan_all = p->scan_all;
    r->plan.lazy = p->lazy != NULL;
    r->sandbox = SANDBOX_NONE;
    frame_reader_init(
        &r->frames.reader,
        (p->limits.result_max > RUN_PROGRESS_MAX ? p->limits.result_max : RUN_PROGRESS_MAX) +
            (events->frame ? FRAME_TOKEN : 0));
    result->at.started = clock_us();
    if (g->jail->ops->take(g->jail, &spec, &r->sandbox, e) < 0)
        return -1;
    r->plan.own_exit = may_report_own_exit(r, p);
    result->warm = r->sandbox.warm;
    if (r->sandbox.warm)
        run_move(r, RUN_RUNNING);
    result->template = r->sandbox.template;
    r->plan.compiles = p->compiles && r->sandbox.template == p->template;
    if (template_is_wasm(r->sandbox.template) && !r->sandbox.warm)
        r->start_ms = ZYGOTE_MS;
    events_assign(r);
    if (job_send(r, p, e) < 0)
        return -1;
    result->at.running = clock_us();
    if (watch(r, p->frames.n > 0, e) < 0)
        return -1;
    *ret = take_ptr(&r);
    return 0;
}

static void run_release(struct run_after *a)
{
    struct run *r = container_of(a, struct run, after);
    struct jail *j = r->engine->jail;

    frame_reader_done(&r->frames.reader);
    if (r->sandbox.lives_on && r->state != RUN_DONE)
        j->ops->kill(j, &r->sandbox); /* release would let its program live */
    if (r->sandbox.ctl >= 0)
        j->ops->release(j, &r->sandbox);
    free(r);
}

void run_after_all(struct run_engine *g)
{
    struct run_after *a;

    if (!g)
        return;
    g->answered = true;
    while ((a = TAILQ_FIRST(&g->waiting))) {
        TAILQ_REMOVE(&g->waiting, a, link);
        a->waits = false;
        a->fn(a);
    }
    g->answered = false;
}

static void on_after(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    run_after_all(user);
}

void run_after(struct run_engine *g, struct run_after *a, void (*fn)(struct run_after *a))
{
    if (a->waits)
        return;
    a->waits = true;
    a->fn = fn;
    TAILQ_INSERT_TAIL(&g->waiting, a, link);
    event_active(&g->after, EV_TIMEOUT, 0);
}

void run_free(struct run *r)
{
    if (!r)
        return;
    if (r->out.fd)
        events_del(r);
    r->engine->runs--;
    if (r->engine->answered)
        run_release(&r->after);
    else
        run_after(r->engine, &r->after, run_release);
}

static int engine_new(struct event_base *base, struct jail *jail, struct run_room *beside,
                      struct run_engine **ret, struct err *e)
{
    struct run_engine *g = calloc(1, sizeof *g);

    if (!g)
        return err_set(e, ERR_HOST, "no memory for the run engine");
    g->base = base;
    g->jail = jail;
    g->room = beside;
    g->beside = beside != NULL;
    TAILQ_INIT(&g->waiting);
    (void)evtimer_assign(&g->after, base, on_after, g);
    *ret = g;
    return 0;
}

int run_engine_open(struct event_base *base, struct jail *jail, struct run_engine **ret,
                    struct err *e)
{
    cleanup_free struct run_room *room = calloc(1, sizeof *room);
    cleanup_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null < 0)
        return err_sys(e, -errno, "open /dev/null");
    if (!room || engine_new(base, jail, NULL, ret, e) < 0)
        return err_set(e, ERR_HOST, "no memory for the run engine");
    room->scratch.null = room->aside.null = take_fd(&null);
    (*ret)->room = take_ptr(&room);
    return 0;
}

int run_engine_beside(const struct run_engine *g, struct jail *jail, struct run_engine **ret,
                      struct err *e)
{
    return engine_new(g->base, jail, g->room, ret, e);
}

void run_engine_close(struct run_engine *g)
{
    if (!g)
        return;
    (void)event_del(&g->after);
    run_after_all(g);
    if (!g->beside) {
        (void)close(g->room->scratch.null);
        free(g->room);
    }
    free(g);
}
