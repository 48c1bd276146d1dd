/* SPDX-License-Identifier: MIT */
#include "proc/command.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/os.h"
#include "proc/crew.h"
#include "proc/job.h"
#include "proc/pump.h"

enum { TURN_MAX = 256 * 1024 }; /* read before others get their turn */

struct stream {
    struct command *command; /* borrowed */
    int fd;                  /* owned; -1: at its end */
    struct event readable;
};

struct command {
    struct crew *crew;     /* borrowed */
    struct worker *worker; /* borrowed from the crew; NULL: it is through */
    struct command_events events;
    struct stream stream[COMMAND_STREAMS];
    struct feed input;
    int in; /* owned; -1: none or at its end */
    bool started, exited, over, paused;
    int status;
    struct event late;
};

/* The program has ended and nobody can write any more. The command may be gone afterwards. */
static void settle(struct command *c)
{
    if (!c->exited || c->over || c->stream[COMMAND_OUT].fd >= 0 || c->stream[COMMAND_ERR].fd >= 0)
        return;
    c->over = true;
    if (c->worker)
        worker_let(take_ptr(&c->worker));
    c->events.done(c->events.user, c->status);
}

/* ---- streams ---- */

static void stream_close(struct stream *s)
{
    if (s->fd < 0)
        return;
    (void)event_del(&s->readable);
    (void)close(take_fd(&s->fd));
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    struct stream *s = user;
    struct command *c = s->command;
    char *room = crew_scratch(c->crew);
    enum command_stream which = s == &c->stream[COMMAND_OUT] ? COMMAND_OUT : COMMAND_ERR;
    size_t turn = 0;

    (void)what;
    while (turn < TURN_MAX && !c->paused && s->fd >= 0) {
        ssize_t n = read(fd, room, CREW_SCRATCH);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            stream_close(s);
            break;
        }
        turn += (size_t)n;
        c->events.output(c->events.user, which, room, (size_t)n);
    }
    settle(c);
}

void command_pause(struct command *c)
{
    c->paused = true;
    for (size_t i = 0; i < COMMAND_STREAMS; i++)
        if (c->stream[i].fd >= 0)
            (void)event_del(&c->stream[i].readable);
}

void command_resume(struct command *c)
{
    c->paused = false;
    for (size_t i = 0; i < COMMAND_STREAMS && c->started; i++)
        if (c->stream[i].fd >= 0)
            (void)event_add(&c->stream[i].readable, NULL);
}

/* ---- the worker's messages ---- */

static void on_late(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    command_kill(user);
}

static void fail(struct command *c, enum command_fault why, int sys)
{
    (void)event_del(&c->late);
    c->over = true;
    c->events.failed(c->events.user, why, sys);
}

static void on_started(struct command *c, int pid)
{
    (void)event_del(&c->late);
    c->started = true;
    if (!c->paused)
        command_resume(c);
    c->events.started(c->events.user, pid);
}

static void on_exited(struct command *c, int status)
{
    if (!c->exited) {
        c->exited = true;
        c->status = status;
        if (c->events.exited)
            c->events.exited(c->events.user, status);
    }
    settle(c);
}

/* A program can kill its worker before that has said a word. */
static void on_lost(struct command *c, bool unread)
{
    if (!c->started && (unread || crew_is_dead(c->crew))) {
        fail(c, crew_is_dead(c->crew) ? COMMAND_LOST : COMMAND_BUSY, 0);
        return;
    }
    if (!c->started)
        on_started(c, 0);
    on_exited(c, SIGKILL);
}

static void on_message(void *user, const struct init_msg *m, const char *bytes, int *fd)
{
    struct command *c = user;

    (void)fd;
    if (!m || m->verb == WORKER_DONE)
        c->worker = NULL;
    if (!m) {
        on_lost(c, !bytes);
    } else if (m->verb == WORKER_STARTED && !c->started) {
        on_started(c, m->pid);
    } else if (m->verb == WORKER_EXITED && c->started) {
        on_exited(c, m->status);
    } else if (m->verb == WORKER_DONE && c->started && m->token) {
        on_exited(c, (int)m->size);
    } else if (m->verb == WORKER_DONE && !c->started) {
        fail(c,
             m->status == WORKER_OP_DIRECTORY ? COMMAND_NO_DIRECTORY
             : m->arg == EAGAIN               ? COMMAND_BUSY
                                              : COMMAND_NO_START,
             (int)m->arg);
    }
}

/* ---- starting ---- */

/* A job that does not fit into a message goes as a file in memory. */
static int job_file(const struct buf *job)
{
    cleanup_close int fd = os_memory_file("job");
    int r;

    if (fd < 0)
        return -errno;
    r = fd_write_all(fd, job->p, job->n);
    return r < 0 ? r : take_fd(&fd);
}

/* theirs: out, err, in or -1; taken. */
static int send_job(struct command *c, const struct plan *p, int theirs[3], struct err *e)
{
    cleanup_with(buf_done) struct buf job = BUF_INIT(JOB_STRINGS_MAX * 2);
    struct init_msg m = {.verb = WORKER_RUN, .arg = theirs[2] >= 0 ? WORKER_RUN_IN : 0};
    int fds[WORKER_FDS] = {-1, -1, -1, -1};
    const struct job_for to = {.traits = crew_traits(c->crew)};
    size_t fds_n = theirs[2] >= 0 ? 3 : 2;
    struct job_head h;
    int r;

    if (job_encode(p, &to, &job, e) < 0)
        return -1;
    memcpy(&h, job.p, sizeof h);
    h.flags |= JOB_NAMED;
    memcpy(job.p, &h, sizeof h);
    if (job.n > WORKER_DATA_MAX) {
        r = job_file(&job);
        if (r < 0)
            return err_sys(e, r, "job of a command");
        m.arg |= WORKER_RUN_JOB;
        fds[fds_n++] = r;
        job.n = 0;
    }
    for (size_t i = 0; i < 3 && theirs[i] >= 0; i++)
        fds[i] = take_fd(&theirs[i]);
    r = worker_send(c->worker, &m, job.p, job.n, fds, fds_n);
    return r < 0 ? err_sys(e, r, "send a command to its worker") : 0;
}

static int open_streams(struct command *c, bool with_input, int theirs[3])
{
    int pair[2], r = 0;

    for (size_t i = 0; i < COMMAND_STREAMS && r == 0; i++) {
        r = fd_pipe(pair);
        if (r < 0)
            break;
        c->stream[i].fd = pair[0];
        theirs[i] = pair[1];
        r = fd_nonblock(pair[0], true);
        (void)event_assign(&c->stream[i].readable, crew_base(c->crew), pair[0],
                           EV_READ | EV_PERSIST, on_readable, &c->stream[i]);
    }
    if (r < 0 || !with_input)
        return r;
    r = fd_pipe(pair);
    if (r < 0)
        return r;
    theirs[2] = pair[0];
    c->in = pair[1];
    return fd_nonblock(c->in, true);
}

/* A tenant can stop workers: nobody waits for one for ever. */
static void arm(struct command *c)
{
    const struct timeval tv = crew_patience(c->crew, 1);

    (void)event_add(&c->late, &tv);
}

static int start(struct command *c, const struct plan *p, struct err *e)
{
    int theirs[3] = {-1, -1, -1};
    int r = open_streams(c, p->input.p != NULL, theirs);

    if (r == -EMFILE || r == -ENFILE)
        r = err_set(e, ERR_BUSY, "no descriptor is left for the streams of a command");
    else if (r < 0)
        r = err_sys(e, r, "streams of a command");
    else
        r = crew_take(c->crew, on_message, c, &c->worker, e);
    if (r == 0 && send_job(c, p, theirs, e) < 0) {
        worker_kill(c->worker);
        r = -1;
    }
    fd_close_all(theirs, 3);
    if (r == 0)
        arm(c);
    if (r == 0 && c->in >= 0) {
        struct iovec input = {.iov_base = (void *)(uintptr_t)p->input.p, .iov_len = p->input.n};

        feed_start(&c->input, crew_base(c->crew), &c->in, true, &input, 1);
    }
    return r;
}

int command_start(struct crew *crew, const struct plan *p, const struct command_events *events,
                  struct command **ret, struct err *e)
{
    cleanup_with(command_freep) struct command *c = calloc(1, sizeof *c);

    if (!c)
        return err_set(e, ERR_HOST, "no memory for a command");
    c->crew = crew;
    c->events = *events;
    c->in = -1;
    for (size_t i = 0; i < COMMAND_STREAMS; i++)
        c->stream[i] = (struct stream){.command = c, .fd = -1};
    (void)evtimer_assign(&c->late, crew_base(crew), on_late, c);
    if (start(c, p, e) < 0)
        return -1;
    *ret = take_ptr(&c);
    return 0;
}

void command_kill(struct command *c)
{
    if (c->worker)
        worker_kill(c->worker);
}

void command_free(struct command *c)
{
    if (!c)
        return;
    if (event_initialized(&c->late))
        (void)event_del(&c->late);
    if (c->worker) {
        worker_kill(c->worker);
        worker_let(c->worker);
    }
    for (size_t i = 0; i < COMMAND_STREAMS; i++)
        stream_close(&c->stream[i]);
    if (c->input.fd)
        feed_done(&c->input);
    closep(&c->in);
    free(c);
}
