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
    WORKERS_MAX = 4096, /* of one sandbox; its limit of processes is usually met first */
    KILL_MS = 2000,     /* a worker gets that long to end what it started, then init ends both */
    FAILURE_MAX = 256,
    TRIES_MAX =
        4, /* workers asked for one request, if tenants kill them before they have read it */
};

struct worker {
    TAILQ_ENTRY(worker) link; /* in the crew's idle or busy list */
    struct crew *crew;        /* borrowed */
    worker_fn *fn;            /* NULL: nobody listens */
    void *user;
    int sock; /* owned */
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
    unsigned idle_n, n;
    uint32_t next_token;
    bool dead;
    unsigned writable;
    char failure[FAILURE_MAX];
    struct event ctl, spare, tell;
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

static int hire(struct crew *c, struct worker **ret, struct err *e)
{
    cleanup_close int here = -1, there = -1;
    struct worker *w;
    int sp[2], r;

    if (c->n >= WORKERS_MAX)
        return err_set(e, ERR_BUSY, "%d things are under way in this sandbox", WORKERS_MAX);
    r = fd_message_pair(sp);
    if (r < 0)
        return err_sys(e, r, "socket of a worker");
    here = sp[0], there = sp[1];
    r = fd_nonblock(here, true);
    w = r < 0 ? NULL : calloc(1, sizeof *w);
    if (!w)
        return err_set(e, ERR_HOST, "no memory for a worker");
    r = ctl_send(c, INIT_HIRE, ++c->next_token, there);
    if (r < 0) {
        free(w);
        (void)err_sys(e, r, "ask for a worker");
        e->kind = r == -EAGAIN ? ERR_BUSY : ERR_HOST;
        return -1;
    }
    *w = (struct worker){.crew = c, .sock = take_fd(&here), .token = c->next_token, .idle = true};
    TAILQ_INSERT_HEAD(&c->idle, w, link);
    c->idle_n++;
    c->n++;
    listen_to(w);
    (void)evtimer_assign(&w->late, c->conf.base, on_late, w);
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
    if (!c->dead && c->idle_n == 0)
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
    int sock = w->sock;
    struct err ignored;

    if (c->dead || killed || w->asked.n == 0 || ++w->tries == TRIES_MAX ||
        (!other && hire(c, &other, &ignored) < 0))
        return false;
    (void)event_del(&w->readable);
    (void)event_del(&other->readable);
    w->sock = other->sock;
    w->token = other->token;
    other->sock = sock;
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

struct timeval crew_patience(const struct crew *c, unsigned times)
{
    uint64_t ms = (uint64_t)c->conf.answer_ms * times;

    return (struct timeval){.tv_sec = (time_t)(ms / 1000), .tv_usec = (long)(ms % 1000) * 1000};
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
