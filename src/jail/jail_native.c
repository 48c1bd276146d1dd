/* SPDX-License-Identifier: MIT */
/*
 * The native jail: sandboxes from our launcher, some of them warm.
 *
 * A box is one sandbox as the daemon sees it. It is asked for with PREPARE and
 * usable at once, because a job may be written before anybody reads it; the
 * launcher's STARTED, FAILED and DEAD arrive later.
 *
 *      make ──▶ PREPARING ──READY──▶ pooled ──take──▶ taken ──release──▶ released
 *                  └────────────────take────────────────▲                  │
 *      freed when released and the launcher has said DEAD or FAILED ◀──────┘
 *
 * A pooled box waits with its ends open; a taken one belongs to the caller. No
 * box is ever taken twice.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "jail/jails.h"
#include "jail/outbox.h"
#include "jail/usage.h"
#include "launch/client.h"

enum {
    BUCKETS = 256,
    SLOTS_KNOWN = 4096, /* usage files of slots, by index modulo this */
    PROBE_MS = 15000,
    FAILURE_MAX = 256,
    FAILURES_MAX = 16, /* of a template in a row, without a success: no more warming for a while */
    RETRY_S = 5,
};

struct box {
    TAILQ_ENTRY(box) bucket, pool;
    struct native *jail;             /* borrowed */
    struct sandbox sandbox;          /* descriptors are ours while pooled */
    struct event ctl;                /* while pooled */
    bool pooled, ready, taken, over; /* over: the launcher has nothing more to say */
    uint32_t slot;
    bool started;
    struct usage_base base;
    char failure[FAILURE_MAX];
};
TAILQ_HEAD(boxes, box);

struct pool {
    struct boxes waiting; /* in the order they were asked for */
    unsigned target, n, ready;
    unsigned failures; /* in a row */
};

struct native {
    struct jail jail;
    struct event_base *loop; /* borrowed */
    const struct log *log;   /* borrowed */
    struct limits limits;    /* of pooled boxes */
    int sock;
    struct outbox outbox;
    pid_t guard;
    struct event readable, refill;
    uint32_t templates; /* which can be warmed */
    uint64_t next_id;
    unsigned alive;
    bool watch_memory;
    struct boxes by_id[BUCKETS];
    struct pool pools[TEMPLATE_COUNT];
    struct usage_files slots[SLOTS_KNOWN];
};

static struct native *native_of(struct jail *j)
{
    return (struct native *)j;
}

/* ---- boxes ---- */

static struct boxes *bucket(struct native *n, uint64_t id)
{
    return &n->by_id[id % BUCKETS];
}

static struct box *box_find(struct native *n, uint64_t id)
{
    struct box *b;

    TAILQ_FOREACH(b, bucket(n, id), bucket)
    if (b->sandbox.id == id)
        return b;
    return NULL;
}

static void box_close(struct box *b)
{
    int *fds[] = {&b->sandbox.ctl, &b->sandbox.job, &b->sandbox.in, &b->sandbox.out,
                  &b->sandbox.err};

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fd_close_all(fds[i], 1);
}

static void box_unpool(struct box *b)
{
    struct pool *p = &b->jail->pools[b->sandbox.template];

    if (!b->pooled)
        return;
    TAILQ_REMOVE(&p->waiting, b, pool);
    p->n--;
    p->ready -= b->ready;
    b->pooled = false;
    (void)event_del(&b->ctl);
}

static void box_free(struct box *b)
{
    box_unpool(b);
    box_close(b);
    TAILQ_REMOVE(bucket(b->jail, b->sandbox.id), b, bucket);
    b->jail->alive--;
    free(b);
}

/* Both sides are through with it. */
static void box_settle(struct box *b)
{
    if (b->over && !b->taken && !b->pooled)
        box_free(b);
}

/* The five pairs of ends. Ours are non-blocking. */
static int make_ends(struct sandbox *s, int theirs[LAUNCH_FDS_PREPARE])
{
    int *ours[LAUNCH_FDS_PREPARE] = {&s->ctl, &s->job, &s->in, &s->out, &s->err};
    int r = 0;

    for (size_t i = 0; i < LAUNCH_FDS_PREPARE && r == 0; i++) {
        int pair[2];

        r = i == 0   ? fd_socketpair(SOCK_SEQPACKET, pair)
            : i == 1 ? fd_socketpair(SOCK_STREAM, pair)
                     : fd_pipe(pair);
        if (r < 0)
            break;
        *ours[i] = pair[i == 2 ? 1 : 0]; /* standard input flows the other way */
        theirs[i] = pair[i == 2 ? 0 : 1];
        r = fd_nonblock(*ours[i], true);
    }
    return r;
}

static void fill(const struct native *n, const struct sandbox_spec *s, struct launch_msg *m)
{
    m->verb = LAUNCH_PREPARE;
    m->template = s->template;
    m->memory_max = s->limits->memory_max;
    m->workspace_max = s->limits->workspace_max;
    m->workspace_files = s->limits->workspace_files;
    m->tmp_max = s->limits->tmp_max;
    m->pids_max = s->limits->pids_max;
    m->flags = n->watch_memory ? LAUNCH_WATCH_MEMORY : 0;
    m->flags |= s->persistent ? LAUNCH_PERSISTENT : 0;
}

static int box_new(struct native *n, const struct sandbox_spec *s, struct box **ret, struct err *e)
{
    int theirs[LAUNCH_FDS_PREPARE] = {-1, -1, -1, -1, -1};
    struct launch_msg m = {0};
    struct box *b = calloc(1, sizeof *b);
    int r;

    if (!b)
        return err_set(e, ERR_HOST, "out of memory");
    b->jail = n;
    b->sandbox = SANDBOX_NONE;
    b->sandbox.id = m.id = ++n->next_id;
    b->sandbox.template = s->template;
    b->sandbox.adapter = b;
    fill(n, s, &m);
    r = s->workspace && strlen(s->workspace) >= sizeof m.workspace ? -ENAMETOOLONG
                                                                   : make_ends(&b->sandbox, theirs);
    if (r == 0 && s->workspace)
        memcpy(m.workspace, s->workspace, strlen(s->workspace));
    if (r == 0)
        r = outbox_send(&n->outbox, &m, theirs, LAUNCH_FDS_PREPARE);
    else
        fd_close_all(theirs, LAUNCH_FDS_PREPARE);
    if (r < 0) {
        box_close(b);
        free(b);
        (void)err_sys(e, r, "ask the launcher for a sandbox");
        e->kind = r == -EMFILE || r == -ENFILE ? ERR_BUSY : ERR_HOST;
        return -1;
    }
    TAILQ_INSERT_TAIL(bucket(n, m.id), b, bucket);
    n->alive++;
    *ret = b;
    return 0;
}

/* ---- the pool ---- */

static void refill_later(struct native *n, int seconds)
{
    const struct timeval t = {.tv_sec = seconds};

    if (!event_pending(&n->refill, EV_TIMEOUT, NULL))
        (void)event_add(&n->refill, &t);
}

/* A pooled box spoke: it is ready, or it failed, or it is gone. */
static void on_pooled(evutil_socket_t fd, short what, void *user)
{
    char bytes[sizeof(struct init_msg) + FAILURE_MAX];
    struct box *b = user;
    struct native *n = b->jail;
    struct pool *p = &n->pools[b->sandbox.template];
    ssize_t got = fd_recv(fd, bytes, sizeof bytes, NULL, NULL);
    struct init_msg m;

    (void)what;
    if (got == -EAGAIN)
        return;
    if (got >= (ssize_t)sizeof m) {
        memcpy(&m, bytes, sizeof m);
        if (m.verb == INIT_READY) {
            b->ready = true;
            p->ready++;
            p->failures = 0;
            return;
        }
    }
    p->failures++;
    box_unpool(b);
    box_close(b);
    box_settle(b);
    refill_later(n, p->failures >= FAILURES_MAX ? RETRY_S : 0);
}

static void pool_add(struct native *n, enum plan_template t)
{
    const struct sandbox_spec s = {.template = t, .limits = &n->limits};
    struct pool *p = &n->pools[t];
    struct box *b;
    struct err e;

    if (box_new(n, &s, &b, &e) < 0) {
        log_event(n->log, LOG_WARN, "pool_refill_failed", LOG_STR("error", e.text));
        refill_later(n, RETRY_S);
        return;
    }
    b->pooled = true;
    TAILQ_INSERT_TAIL(&p->waiting, b, pool);
    p->n++;
    (void)event_assign(&b->ctl, n->loop, b->sandbox.ctl, EV_READ | EV_PERSIST, on_pooled, b);
    (void)event_add(&b->ctl, NULL);
}

static void on_refill(evutil_socket_t fd, short what, void *user)
{
    struct native *n = user;

    (void)fd, (void)what;
    for (unsigned t = 0; t < TEMPLATE_COUNT && n->sock >= 0; t++) {
        struct pool *p = &n->pools[t];
        unsigned want = p->failures >= FAILURES_MAX ? 1 : p->target;

        if (n->templates & BIT(t))
            for (unsigned have = p->n; have < want; have++)
                pool_add(n, (enum plan_template)t);
    }
}

static bool fits_pool(const struct native *n, const struct sandbox_spec *s)
{
    const struct limits *a = s->limits, *b = &n->limits;

    return !s->workspace && !s->persistent && a->memory_max == b->memory_max &&
           a->workspace_max == b->workspace_max && a->workspace_files == b->workspace_files &&
           a->tmp_max == b->tmp_max && a->pids_max == b->pids_max;
}

/* The first that is ready, else the one that has been waiting longest. */
static struct box *pool_take(struct native *n, const struct sandbox_spec *s)
{
    struct pool *p = &n->pools[s->template];
    struct box *b = NULL;

    if (!fits_pool(n, s))
        return NULL;
    TAILQ_FOREACH(b, &p->waiting, pool)
    if (b->ready)
        break;
    if (!b)
        b = TAILQ_FIRST(&p->waiting);
    if (b)
        box_unpool(b);
    return b;
}

/* ---- the port ---- */

static int take(struct jail *j, const struct sandbox_spec *s, struct sandbox *ret, struct err *e)
{
    struct native *n = native_of(j);
    struct sandbox_spec want = *s;
    struct box *b;

    if (n->sock < 0)
        return err_set(e, ERR_HOST, "the launcher is gone");
    if (!(n->templates & BIT(want.template)) || n->pools[want.template].failures >= FAILURES_MAX)
        want.template = TEMPLATE_EXEC; /* slower, the same otherwise: the plan has an argv */
    b = pool_take(n, &want);
    if (b)
        b->sandbox.warm = b->ready;
    else if (box_new(n, &want, &b, e) < 0)
        return -1;
    b->taken = true;
    if (b->started)
        usage_mark(&n->slots[b->slot % SLOTS_KNOWN], &b->base);
    *ret = b->sandbox;
    return 0;
}

static void usage(struct jail *j, const struct sandbox *s, struct usage *ret)
{
    struct native *n = native_of(j);
    const struct box *b = s->adapter;

    *ret = USAGE_UNKNOWN;
    if (b->started)
        usage_since(&n->slots[b->slot % SLOTS_KNOWN], &b->base, ret);
}

static void kill_all(struct jail *j, const struct sandbox *s)
{
    struct native *n = native_of(j);
    struct launch_msg m = {.verb = LAUNCH_KILL, .id = s->id};

    /* Cannot be told: init ends by itself when its socket does. */
    if (outbox_send(&n->outbox, &m, NULL, 0) < 0)
        (void)shutdown(s->ctl, SHUT_RDWR);
}

static void release(struct jail *j, struct sandbox *s)
{
    struct box *b = s->adapter;
    int *fds[] = {&s->ctl, &s->job, &s->in, &s->out, &s->err};

    if (!b)
        return;
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fd_close_all(fds[i], 1);
    *s = SANDBOX_NONE;
    b->sandbox.ctl = b->sandbox.job = b->sandbox.in = b->sandbox.out = b->sandbox.err = -1;
    b->taken = false;
    refill_later(native_of(j), 0);
    box_settle(b);
}

static const char *failure(struct jail *j, const struct sandbox *s)
{
    const struct box *b = s->adapter;

    (void)j;
    return b ? b->failure : "";
}

static int probe(struct jail *j, unsigned *ret_traits, struct err *e)
{
    if (native_of(j)->sock < 0)
        return err_set(e, ERR_HOST, "the launcher is gone");
    *ret_traits = j->traits;
    return 0;
}

static void state(const struct jail *j, struct jail_pool_state *ret)
{
    const struct native *n = (const struct native *)j;

    *ret = (struct jail_pool_state){.sandboxes = n->alive};
    for (size_t t = 0; t < TEMPLATE_COUNT; t++) {
        ret->ready[t] = n->pools[t].ready;
        ret->preparing[t] = n->pools[t].n - n->pools[t].ready;
    }
}

/* ---- what the launcher tells ---- */

static void on_started(struct native *n, const struct launch_msg *m, int *fds, size_t fds_n)
{
    struct box *b = box_find(n, m->id);
    struct usage_files *u = &n->slots[m->slot % SLOTS_KNOWN];

    if (fds_n == LAUNCH_FDS_STARTED)
        usage_files_set(u, fds, (m->flags & LAUNCH_CGROUP2) != 0);
    else
        fd_close_all(fds, fds_n);
    if (!b)
        return;
    b->slot = m->slot;
    b->started = true;
    usage_mark(u, &b->base);
}

static void on_over(struct native *n, const struct launch_msg *m)
{
    struct box *b = box_find(n, m->id);

    if (m->flags & LAUNCH_RETIRED)
        usage_files_close(&n->slots[m->slot % SLOTS_KNOWN]);
    if (!b)
        return;
    if (m->verb == LAUNCH_FAILED) {
        size_t len = strnlen(m->err.text, sizeof b->failure - 1);

        memcpy(b->failure, m->err.text, len);
        b->failure[len] = '\0';
        log_event(n->log, LOG_ERROR, "sandbox_failed", LOG_STR("error", b->failure));
    }
    b->over = true;
    box_settle(b);
}

/* The launcher died and another one took over; every sandbox died with it. */
static void on_restart(struct native *n)
{
    log_event(n->log, LOG_ERROR, "launcher_restarted", LOG_INT("sandboxes_lost", n->alive));
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct box *b = TAILQ_FIRST(&n->by_id[i]), *next; b; b = next) {
            next = TAILQ_NEXT(b, bucket);
            (void)snprintf(b->failure, sizeof b->failure, "the launcher was restarted");
            b->over = true;
            b->started = false;
            if (b->pooled)
                box_free(b);
            else
                box_settle(b);
        }
    for (size_t i = 0; i < SLOTS_KNOWN; i++)
        usage_files_close(&n->slots[i]);
    refill_later(n, 0);
}

static void on_lost(struct native *n)
{
    log_event(n->log, LOG_ERROR, "launcher_lost",
              LOG_STR("error", "the launcher closed its socket"));
    (void)event_del(&n->readable);
    outbox_close(&n->outbox);
    fd_close_all(&n->sock, 1);
    if (n->jail.lost)
        n->jail.lost(n->jail.lost_user);
}

static void on_launcher(evutil_socket_t fd, short what, void *user)
{
    struct native *n = user;
    int fds[LAUNCH_FDS_STARTED];
    struct launch_msg m;
    size_t fds_n;
    int r;

    (void)what;
    while ((r = launch_receive(fd, &m, fds, &fds_n)) > 0 || r == -EPROTO) {
        if (r == -EPROTO) /* a STARTED without its usage files: only numbers are missing */
            continue;
        if (m.verb == LAUNCH_STARTED) {
            on_started(n, &m, fds, fds_n);
            continue;
        }
        fd_close_all(fds, fds_n);
        if (m.verb == LAUNCH_HELLO)
            on_restart(n);
        else
            on_over(n, &m);
    }
    if (r != -EAGAIN)
        on_lost(n);
}

/* ---- opening ---- */

/* One sandbox, made and thrown away: traits are promised only after they have been built. */
static int try_one(struct native *n, struct err *e)
{
    const struct sandbox_spec s = {.template = TEMPLATE_EXEC, .limits = &n->limits};
    char bytes[sizeof(struct init_msg) + FAILURE_MAX] = "";
    struct pollfd p = {.events = POLLIN};
    struct box *b;
    struct init_msg m = {0};
    ssize_t got;

    if (box_new(n, &s, &b, e) < 0)
        return -1;
    b->taken = true;
    p.fd = b->sandbox.ctl;
    if (poll(&p, 1, PROBE_MS) <= 0)
        return err_set(e, ERR_HOST, "no sandbox within %d s", PROBE_MS / 1000);
    got = fd_recv(b->sandbox.ctl, bytes, sizeof bytes - 1, NULL, NULL);
    if (got >= (ssize_t)sizeof m)
        memcpy(&m, bytes, sizeof m);
    if (m.verb == INIT_READY) {
        release(&n->jail, &b->sandbox);
        return 0;
    }
    if (m.verb == INIT_FAILED)
        return err_set(e, ERR_HOST, "a sandbox failed at: %s", bytes + sizeof m);
    on_launcher(n->sock, EV_READ, n); /* the keeper's words, if it had any */
    return err_set(e, ERR_HOST, "a sandbox could not be made: %s", b->failure);
}

static void close_jail(struct jail *j)
{
    struct native *n = native_of(j);

    for (size_t i = 0; i < BUCKETS; i++)
        while (!TAILQ_EMPTY(&n->by_id[i]))
            box_free(TAILQ_FIRST(&n->by_id[i]));
    if (event_initialized(&n->readable))
        (void)event_del(&n->readable);
    if (event_initialized(&n->refill))
        (void)event_del(&n->refill);
    for (size_t i = 0; i < SLOTS_KNOWN; i++)
        usage_files_close(&n->slots[i]);
    outbox_close(&n->outbox);
    fd_close_all(&n->sock, 1);
    if (n->guard > 0) /* it removes the control groups, then ends */
        (void)waitpid(n->guard, NULL, 0);
    free(n);
}

static const struct jail_ops ops = {
    .name = "native",
    .probe = probe,
    .take = take,
    .usage = usage,
    .kill = kill_all,
    .release = release,
    .failure = failure,
    .state = state,
    .close = close_jail,
};

static void configure(struct native *n, const struct config *c)
{
    n->limits = (struct limits){
        .memory_max = c->memory_mb << 20,
        .workspace_max = c->workspace_mb << 20,
        .workspace_files = c->workspace_files,
        .tmp_max = c->tmp_mb << 20,
        .pids_max = (uint32_t)c->pids_max,
    };
    n->pools[TEMPLATE_EXEC].target = (unsigned)c->pool_exec;
    n->pools[TEMPLATE_PYTHON].target = (unsigned)c->pool_python;
    n->pools[TEMPLATE_NODE].target = (unsigned)c->pool_node;
}

/* Our programs are installed side by side. */
static int own_directory(char out[4096], struct err *e)
{
    ssize_t n = readlink("/proc/self/exe", out, 4095);
    char *slash;

    if (n <= 0)
        return err_sys(e, -errno, "/proc/self/exe");
    out[n] = '\0';
    slash = strrchr(out, '/');
    *(slash ? slash : out) = '\0';
    return 0;
}

static int start(struct native *n, const struct config *c, struct err *e)
{
    char directory[4096];
    struct launch_conf conf = {
        .directory = directory,
        .workspaces = c->workspace_path,
        .netns = c->netns,
        .uid_base = LAUNCH_UID_BASE,
    };
    struct launch_msg hello;

    if (own_directory(directory, e) < 0 || launch_start(&conf, &n->sock, &n->guard, &hello, e) < 0)
        return -1;
    outbox_open(&n->outbox, n->loop, n->sock);
    n->jail.traits = hello.traits;
    n->templates = hello.templates;
    n->watch_memory = !(hello.traits & JAIL_MEMORY);
    return try_one(n, e);
}

int jail_native_open(const struct config *c, struct event_base *loop, const struct log *log,
                     struct jail **ret, struct err *e)
{
    struct native *n = calloc(1, sizeof *n);

    if (!n)
        return err_set(e, ERR_HOST, "out of memory");
    n->jail.ops = &ops;
    n->loop = loop;
    n->log = log;
    n->sock = -1;
    outbox_init(&n->outbox);
    for (size_t i = 0; i < BUCKETS; i++)
        TAILQ_INIT(&n->by_id[i]);
    for (size_t i = 0; i < SLOTS_KNOWN; i++)
        usage_files_init(&n->slots[i]);
    for (size_t t = 0; t < TEMPLATE_COUNT; t++)
        TAILQ_INIT(&n->pools[t].waiting);
    configure(n, c);
    (void)evtimer_assign(&n->refill, loop, on_refill, n);
    if (start(n, c, e) < 0) {
        close_jail(&n->jail);
        return -1;
    }
    (void)event_assign(&n->readable, loop, n->sock, EV_READ | EV_PERSIST, on_launcher, n);
    (void)event_add(&n->readable, NULL);
    refill_later(n, 0);
    *ret = &n->jail;
    return 0;
}
