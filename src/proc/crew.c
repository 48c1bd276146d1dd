/* SPDX-License-Identifier: MIT */
#include "proc/crew.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/os.h"

enum {
    IDLE_MAX = 16,      /* more idle workers than that are sent home */
    WORKERS_MAX = 4096, /* of one sandbox; init has a table of that size */
    OWN_PIDS = 2,       /* of a sandbox: init and the idle worker that is kept ready */
    BRIEF_SHARE = 8,    /* one process in so many is for requests that start no program */
    BRIEF_MIN = 2,
    KILL_MS = 2000, /* a worker gets that long to end what it started, then init ends both */
    FAILURE_MAX = 256,
    TRIES_MAX =
        4, /* workers asked for one request, if tenants kill them before they have read it */
};

struct worker {
    TAILQ_ENTRY(worker) link; /* in the crew's idle or busy list */
    struct crew *crew;        /* borrowed */
    worker_fn *fn;            /* NULL: nobody listens */
    void *user;
    int sock;    /* owned */
    int unhired; /* owned: init's end, while its control socket is full; -1: it has it */
    uint32_t token;
    bool idle;
    struct event readable, late;
    struct buf asked; /* the request, until there is an answer */
    int fds[WORKER_FDS];
    size_t fds_n;
    unsigned tries;
};
TAILQ_HEAD(workers, worker);

struct crew {
    struct crew_conf conf;
    struct sandbox sandbox; /* owned */
    struct workers idle, busy;
    unsigned idle_n, n, workers_max;
    unsigned unhired_n;
    struct admission admission[CREW_KINDS];
    uint32_t next_token;
    bool dead;
    unsigned writable;
    char failure[FAILURE_MAX];
    struct event ctl, writable_ctl, spare, tell;
    char scratch[CREW_SCRATCH];
    struct {
        struct init_msg m;
        char bytes[WORKER_DATA_MAX + 1];
    } in;
};

/* ---- workers ---- */

/* The request has been heard. */
static void forget_request(struct worker *w)
{
    buf_done(&w->asked);
    fd_close_all(w->fds, w->fds_n);
    w->fds_n = 0;
    w->tries = 0;
}

static void worker_free(struct worker *w)
{
    struct crew *c = w->crew;

    forget_request(w);

    (void)event_del(&w->readable);
    (void)event_del(&w->late);
    TAILQ_REMOVE(w->idle ? &c->idle : &c->busy, w, link);
    c->idle_n -= w->idle;
    c->n--;
    c->unhired_n -= w->unhired >= 0;
    closep(&w->unhired);
    closep(&w->sock);
    free(w);
}

static void worker_rest(struct worker *w)
{
    struct crew *c = w->crew;

    (void)event_del(&w->late);
    if (c->idle_n >= IDLE_MAX) {
        worker_free(w); /* it ends when its socket does */
        return;
    }
    TAILQ_REMOVE(&c->busy, w, link);
    TAILQ_INSERT_HEAD(&c->idle, w, link);
    w->fn = NULL;
    w->idle = true;
    c->idle_n++;
}

static int ctl_send(struct crew *c, enum init_verb verb, uint32_t token, int fd)
{
    struct init_msg m = {.verb = verb, .token = token};

    return fd_send(c->sandbox.ctl, &m, sizeof m, &fd, fd >= 0 ? 1 : 0);
}

/* A peer that closes with something unread resets the connection: so we know. */
static void on_worker_lost(struct worker *w, bool unread)
{
    worker_fn *fn = w->fn;
    void *user = w->user;
    int none = -1;

    worker_free(w);
    if (fn)
        fn(user, NULL, unread ? NULL : "", &none);
}

static void on_worker_done(struct worker *w, const struct init_msg *m, const char *bytes, int *fd)
{
    worker_fn *fn = w->fn;
    void *user = w->user;

    worker_rest(w);
    if (fn)
        fn(user, m, bytes, fd);
}

static bool ask_another(struct worker *w);

/* One message at a time: whoever is told may change everything. */
static void on_readable(evutil_socket_t sock, short what, void *user)
{
    struct worker *w = user;
    struct crew *c = w->crew;
    cleanup_close int fd = -1;
    size_t fds_n = 1;
    ssize_t got = fd_recv(sock, &c->in, sizeof c->in.m + WORKER_DATA_MAX, &fd, &fds_n);

    (void)what;
    if (got == -EAGAIN || got == -EINTR)
        return;
    if (fds_n == 0)
        fd = -1;
    if (got < (ssize_t)sizeof c->in.m || c->in.m.name_n != (size_t)got - sizeof c->in.m ||
        w->idle) {
        if (got != -ECONNRESET || !ask_another(w))
            on_worker_lost(w, got == -ECONNRESET);
        return;
    }
    c->in.bytes[c->in.m.name_n] = '\0';
    forget_request(w);
    if (c->in.m.verb == WORKER_DONE)
        on_worker_done(w, &c->in.m, c->in.bytes, &fd);
    else if (w->fn)
        w->fn(w->user, &c->in.m, c->in.bytes, &fd);
}

static void on_late(evutil_socket_t fd, short what, void *user)
{
    struct worker *w = user;

    (void)fd, (void)what;
    if (ctl_send(w->crew, INIT_FIRE, w->token, -1) < 0)
        (void)shutdown(w->sock, SHUT_RDWR);
}

static void listen_to(struct worker *w)
{
    (void)event_assign(&w->readable, w->crew->conf.base, w->sock, EV_READ | EV_PERSIST, on_readable,
                       w);
    (void)event_add(&w->readable, NULL);
}

/* Gives init the other end of its socket. False: the control socket is full. What was asked of the
 * worker meanwhile waits in the worker's own socket. */
static bool hire_send(struct worker *w)
{
    struct crew *c = w->crew;
    int r = ctl_send(c, INIT_HIRE, w->token, w->unhired);

    if (r == -EAGAIN)
        return false;
    /* after another failure w->sock ends, and its user hears of it */
    (void)close(take_fd(&w->unhired));
    c->unhired_n--;
    return true;
}

static bool hire_all(struct workers *list)
{
    struct worker *w;

    TAILQ_FOREACH(w, list, link)
    if (w->unhired >= 0 && !hire_send(w))
        return false;
    return true;
}

static void on_ctl_writable(evutil_socket_t fd, short what, void *user)
{
    struct crew *c = user;

    (void)fd, (void)what;
    if (c->dead || (hire_all(&c->busy) && hire_all(&c->idle)))
        (void)event_del(&c->writable_ctl);
}

static int hire(struct crew *c, struct worker **ret, struct err *e)
{
    cleanup_close int here = -1, there = -1;
    struct worker *w;
    int sp[2], r;

    if (c->n >= c->workers_max)
        return err_set(e, ERR_BUSY, "%u requests are under way in this sandbox", c->n);
    r = fd_message_pair(sp);
    if (r == -EMFILE || r == -ENFILE)
        return err_set(e, ERR_BUSY, "no descriptor is left for a worker");
    if (r < 0)
        return err_sys(e, r, "socket of a worker");
    here = sp[0], there = sp[1];
    r = fd_nonblock(here, true);
    w = r < 0 ? NULL : calloc(1, sizeof *w);
    if (!w)
        return err_set(e, ERR_HOST, "no memory for a worker");
    *w = (struct worker){.crew = c,
                         .sock = take_fd(&here),
                         .unhired = take_fd(&there),
                         .token = ++c->next_token,
                         .idle = true};
    TAILQ_INSERT_HEAD(&c->idle, w, link);
    c->idle_n++;
    c->n++;
    c->unhired_n++;
    listen_to(w);
    (void)evtimer_assign(&w->late, c->conf.base, on_late, w);
    if (c->unhired_n > 1 || !hire_send(w))
        (void)event_add(&c->writable_ctl, NULL);
    *ret = w;
    return 0;
}

/* Ahead of need, and not while somebody waits. */
static void on_spare(evutil_socket_t fd, short what, void *user)
{
    struct crew *c = user;
    struct worker *w;
    struct err ignored;

    (void)fd, (void)what;
    if (!c->dead && c->idle_n == 0 && c->unhired_n == 0)
        (void)!hire(c, &w, &ignored);
}

/* Tenants can kill workers. */
static struct worker *idle_alive(struct crew *c)
{
    struct worker *w;
    char byte;

    while ((w = TAILQ_FIRST(&c->idle))) {
        if (recv(w->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
            break;
        worker_free(w);
    }
    return w;
}

/* Its request was never read: it goes to another one, in whose place this one steps. */
static bool ask_another(struct worker *w)
{
    struct crew *c = w->crew;
    struct worker *other = c->dead ? NULL : idle_alive(c);
    bool killed = event_pending(&w->late, EV_TIMEOUT, NULL);
    uint32_t token = w->token;
    int sock = w->sock, unhired = w->unhired;
    struct err ignored;

    if (c->dead || killed || w->asked.n == 0 || ++w->tries == TRIES_MAX ||
        (!other && hire(c, &other, &ignored) < 0))
        return false;
    (void)event_del(&w->readable);
    (void)event_del(&other->readable);
    w->sock = other->sock;
    w->unhired = other->unhired;
    w->token = other->token;
    other->sock = sock;
    other->unhired = unhired;
    other->token = token;
    worker_free(other);
    listen_to(w);
    return fd_send(w->sock, w->asked.p, w->asked.n, w->fds, w->fds_n) == 0;
}

int crew_take(struct crew *c, worker_fn *fn, void *user, struct worker **ret, struct err *e)
{
    struct worker *w = c->dead ? NULL : idle_alive(c);

    if (c->dead)
        return err_set(e, ERR_HOST, "the sandbox has ended%s%s", c->failure[0] ? ": " : "",
                       c->failure);
    if (!w && hire(c, &w, e) < 0)
        return -1;
    TAILQ_REMOVE(&c->idle, w, link);
    TAILQ_INSERT_TAIL(&c->busy, w, link);
    w->idle = false;
    w->fn = fn;
    w->user = user;
    if (--c->idle_n == 0)
        event_active(&c->spare, EV_TIMEOUT, 0);
    *ret = w;
    return 0;
}

int worker_send(struct worker *w, const struct init_msg *m, const void *bytes, size_t n, int *fds,
                size_t fds_n)
{
    int r;

    w->asked = BUF_INIT(sizeof *m + WORKER_DATA_MAX);
    memcpy(w->fds, fds, fds_n * sizeof *fds);
    w->fds_n = fds_n;
    (void)buf_reserve(&w->asked, sizeof *m + n);
    (void)buf_put(&w->asked, m, sizeof *m);
    (void)buf_put(&w->asked, bytes, n);
    if (w->asked.failed)
        return -EMSGSIZE;
    r = fd_send(w->sock, w->asked.p, w->asked.n, w->fds, w->fds_n);
    return r == -EPIPE && ask_another(w) ? 0 : r;
}

void worker_kill(struct worker *w)
{
    struct init_msg m = {.verb = WORKER_KILL};
    struct timeval tv = {.tv_sec = KILL_MS / 1000};

    if (event_pending(&w->late, EV_TIMEOUT, NULL))
        return;
    if (fd_send(w->sock, &m, sizeof m, NULL, 0) < 0)
        tv.tv_sec = 0;
    (void)event_add(&w->late, &tv);
}

void worker_let(struct worker *w)
{
    w->fn = NULL;
}

/* ---- the sandbox ---- */

static void on_tell(evutil_socket_t fd, short what, void *user)
{
    struct crew *c = user;

    (void)fd, (void)what;
    c->conf.dead(c->conf.user);
}

/* Its workers' sockets end by themselves: the processes are dead. */
static void on_dead(struct crew *c)
{
    const char *why = c->conf.jail->ops->failure(c->conf.jail, &c->sandbox);

    (void)event_del(&c->ctl);
    (void)event_del(&c->writable_ctl);
    c->dead = true;
    if (!c->failure[0] && why)
        (void)snprintf(c->failure, sizeof c->failure, "%s", why);
    event_active(&c->tell, EV_TIMEOUT, 0);
}

static void on_ctl(evutil_socket_t fd, short what, void *user)
{
    struct crew *c = user;
    ssize_t got = fd_recv(fd, &c->in, sizeof c->in.m + WORKER_DATA_MAX, NULL, NULL);

    (void)what;
    if (got == -EAGAIN || got == -EINTR)
        return;
    if (got < (ssize_t)sizeof c->in.m || c->in.m.name_n != (size_t)got - sizeof c->in.m) {
        on_dead(c);
    } else if (c->in.m.verb == INIT_FAILED) {
        (void)snprintf(c->failure, sizeof c->failure, "%.*s", (int)c->in.m.name_n, c->in.bytes);
    } else if (c->in.m.verb == INIT_READY) {
        c->writable = (unsigned)c->in.m.arg;
    }
}

/* A command takes two processes, its worker and its program; any other request takes one. */
static void set_limits(struct crew *c)
{
    unsigned pids = c->conf.limits.pids_max > OWN_PIDS ? c->conf.limits.pids_max - OWN_PIDS : 0;
    unsigned brief, commands;

    if (pids == 0 || pids > 2 * WORKERS_MAX)
        pids = 2 * WORKERS_MAX;
    brief = pids / BRIEF_SHARE > BRIEF_MIN ? pids / BRIEF_SHARE : BRIEF_MIN;
    commands = pids > brief + 2 ? (pids - brief) / 2 : 1;
    c->workers_max = commands + brief < WORKERS_MAX ? commands + brief : WORKERS_MAX;
    admission_init(&c->admission[CREW_COMMAND], commands, c->conf.queue_max);
    admission_init(&c->admission[CREW_BRIEF], brief, c->conf.queue_max);
}

struct admission *crew_admission(struct crew *c, enum crew_kind kind)
{
    return &c->admission[kind];
}

void crew_refuse(struct crew *c)
{
    for (size_t i = 0; i < CREW_KINDS; i++)
        c->admission[i].granting = true;
}

int crew_open(const struct crew_conf *conf, struct crew **ret, struct err *e)
{
    const struct sandbox_spec spec = {
        .template = TEMPLATE_EXEC,
        .limits = &conf->limits,
        .persistent = true,
        .host_network = conf->host_network,
    };
    struct crew *c = calloc(1, sizeof *c);
    struct worker *w;

    if (!c)
        return err_set(e, ERR_HOST, "no memory for a sandbox");
    c->conf = *conf;
    c->sandbox = SANDBOX_NONE;
    set_limits(c);
    TAILQ_INIT(&c->idle);
    TAILQ_INIT(&c->busy);
    (void)evtimer_assign(&c->spare, conf->base, on_spare, c);
    (void)evtimer_assign(&c->tell, conf->base, on_tell, c);
    if (conf->jail->ops->take(conf->jail, &spec, &c->sandbox, e) < 0) {
        free(c);
        return -1;
    }
    int *const unused[] = {&c->sandbox.job, &c->sandbox.in, &c->sandbox.out, &c->sandbox.err};
    for (size_t i = 0; i < ARRAY_LEN(unused); i++)
        fd_close_all(unused[i], 1);
    (void)event_assign(&c->ctl, conf->base, c->sandbox.ctl, EV_READ | EV_PERSIST, on_ctl, c);
    (void)event_add(&c->ctl, NULL);
    (void)event_assign(&c->writable_ctl, conf->base, c->sandbox.ctl, EV_WRITE | EV_PERSIST,
                       on_ctl_writable, c);
    if (hire(c, &w, e) < 0) {
        crew_close(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void crew_kill(struct crew *c)
{
    if (!c->dead)
        c->conf.jail->ops->kill(c->conf.jail, &c->sandbox);
}

void crew_close(struct crew *c)
{
    struct worker *w;

    if (!c)
        return;
    while ((w = TAILQ_FIRST(&c->busy)) || (w = TAILQ_FIRST(&c->idle)))
        worker_free(w);
    (void)event_del(&c->ctl);
    (void)event_del(&c->writable_ctl);
    (void)event_del(&c->spare);
    (void)event_del(&c->tell);
    crew_kill(c);
    c->conf.jail->ops->release(c->conf.jail, &c->sandbox);
    free(c);
}

bool crew_is_dead(const struct crew *c)
{
    return c->dead;
}

const char *crew_failure(const struct crew *c)
{
    return c->failure;
}

unsigned crew_writable(const struct crew *c)
{
    return c->writable;
}

bool crew_busy(const struct crew *c)
{
    return !TAILQ_EMPTY(&c->busy);
}

void crew_usage(const struct crew *c, struct usage *ret)
{
    (void)c->conf.jail->ops->usage(c->conf.jail, &c->sandbox, true, ret);
}

static struct timeval time_of(uint64_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000), .tv_usec = (long)(ms % 1000) * 1000};
}

struct timeval crew_patience(const struct crew *c, unsigned times)
{
    return time_of((uint64_t)c->conf.answer_ms * times);
}

struct timeval crew_wait(const struct crew *c)
{
    return time_of(c->conf.wait_ms);
}

struct event_base *crew_base(const struct crew *c)
{
    return c->conf.base;
}

unsigned crew_traits(const struct crew *c)
{
    return c->conf.jail->traits;
}

char *crew_scratch(struct crew *c)
{
    return c->scratch;
}
