/* SPDX-License-Identifier: MIT */
#include "jail/inner.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "jail/ends.h"
#include "jail/outbox.h"
#include "wire/wire.h"

enum {
    FAILURE_MAX = 256,
    IDLE_QUIET = 2,  /* idle helpers that are kept while all are idle */
    IDLE_MAX = 16,   /* more idle helpers than that are not kept, */
    IDLE_SHARE = 32, /* nor more than one in so many of the sandbox's processes */
    TRIES_MAX = 4,   /* helpers tried for one program: a tenant can kill them */
    MS_PER_S = 1000,
    US_PER_MS = 1000,
};

struct helper {
    TAILQ_ENTRY(helper) link; /* in `idle` or `helpers` */
    struct inner *inner;      /* borrowed */
    uint32_t token;
    bool idle;
    bool program; /* it runs one; idle again after DONE */
    bool killed;  /* pid 1 was asked to: not used again */
    bool warm;    /* of the warm process: for one program */
    int64_t oom;  /* kills in the whole sandbox when it was taken */
    int ctl;      /* owned while it is idle or lingers; -1: the sandbox that was taken has it */
    struct event gone;
};

struct inner {
    struct jail jail; /* first */
    struct inner_conf conf;
    struct sandbox sandbox; /* owned */
    struct outbox outbox;
    TAILQ_HEAD(, helper) idle, helpers; /* helpers: taken or lingering */
    size_t idle_n, idle_max;
    uint32_t next_token;
    bool dead, ready, frozen;
    unsigned writable;
    char failure[FAILURE_MAX];
    struct event ctl, tell, spare;
};

static struct inner *inner_of(struct jail *j)
{
    return (struct inner *)j;
}

/* ---- helpers ---- */

static void helper_unlink(struct helper *h)
{
    if (h->idle)
        TAILQ_REMOVE(&h->inner->idle, h, link);
    else
        TAILQ_REMOVE(&h->inner->helpers, h, link);
    h->inner->idle_n -= h->idle;
}

static void helper_free(struct helper *h)
{
    if (h->ctl >= 0) {
        (void)event_del(&h->gone);
        (void)close(h->ctl);
    }
    helper_unlink(h);
    free(h);
}

static void helper_keep(struct helper *h, bool idle);

/* A helper ended in the midst of its work: a tenant killed it, and may have killed the idle ones in
 * the same call. They look alive until the kernel has closed their sockets, so none of them is
 * used. */
static void idle_discard(struct inner *in)
{
    struct helper *h;

    while ((h = TAILQ_FIRST(&in->idle)))
        helper_free(h);
}

/* The next message of one that has been released. True: it is idle again. */
static bool is_done(const struct helper *h, ssize_t *ret_got)
{
    struct init_msg m;

    *ret_got = fd_recv(h->ctl, &m, sizeof m, NULL, NULL);
    return h->program && *ret_got == sizeof m && m.verb == HELP_DONE;
}

static bool may_idle(const struct helper *h)
{
    const struct inner *in = h->inner;

    return !h->killed && !h->warm && !in->dead && in->idle_n < in->idle_max &&
           (in->idle_n < IDLE_QUIET || !TAILQ_EMPTY(&in->helpers));
}

static int ask(struct inner *in, const struct init_msg *m, int *fds, size_t fds_n)
{
    return outbox_send(&in->outbox, m, sizeof *m, fds, fds_n);
}

/* Pid 1 kills the helper, and then everything that was below it. */
static void helper_kill(struct helper *h)
{
    h->killed = true;
    if (ask(h->inner, &(struct init_msg){.verb = INIT_END_HELP, .token = h->token}, NULL, 0) < 0)
        inner_kill(&h->inner->jail); /* without memory for the message nothing less can be done */
}

/* It lingers until it is done with its program, or ends. One that was released in the midst of a
 * file is to end soon: a tenant can stop it. */
static void on_gone(evutil_socket_t fd, short what, void *user)
{
    struct helper *h = user;
    ssize_t got;
    bool done;

    (void)fd;
    if (what & EV_TIMEOUT) {
        helper_kill(h);
        return;
    }
    done = is_done(h, &got);
    if (done && may_idle(h)) {
        (void)event_del(&h->gone);
        helper_unlink(h);
        h->program = false;
        helper_keep(h, true);
    } else if (got == 0 && h->program) {
        idle_discard(h->inner);
        helper_free(h);
    } else if (done || got == 0 || (got < 0 && got != -EAGAIN && got != -EINTR)) {
        helper_free(h);
    }
}

static int64_t oom_kills(struct inner *in)
{
    struct usage u = USAGE_UNKNOWN;

    (void)in->conf.jail->ops->usage(in->conf.jail, &in->sandbox, false, &u);
    return u.oom_kills > 0 ? u.oom_kills : 0; /* a sandbox that is being made has no counters yet */
}

/* Keeps its control socket and waits for the end of that. */
static void helper_keep(struct helper *h, bool idle)
{
    struct inner *in = h->inner;
    const struct timeval soon = {.tv_sec = in->conf.start_ms / MS_PER_S,
                                 .tv_usec = in->conf.start_ms % MS_PER_S * US_PER_MS};
    bool lingers = !idle && !h->program;

    h->idle = idle;
    in->idle_n += idle;
    if (idle)
        TAILQ_INSERT_HEAD(&in->idle, h, link);
    else
        TAILQ_INSERT_TAIL(&in->helpers, h, link);
    (void)event_assign(&h->gone, in->conf.base, h->ctl, EV_READ | EV_PERSIST, on_gone, h);
    if (event_add(&h->gone, lingers ? &soon : NULL) < 0)
        helper_free(h);
}

/* An idle one. Usable at once: what is sent to it waits in its socket. */
static int helper_new(struct inner *in, bool warm, struct err *e)
{
    struct helper *h = calloc(1, sizeof *h);
    struct sandbox new = SANDBOX_NONE;
    int theirs[LAUNCH_FDS_PREPARE] = {-1};
    int r;

    if (!h)
        return err_set(e, ERR_HOST, "no memory for a helper");
    r = ends_open(&new, theirs, 0, 1);
    *h = (struct helper){.inner = in, .token = ++in->next_token, .warm = warm, .ctl = new.ctl};
    if (r == 0)
        r = ask(in, &(struct init_msg){.verb = INIT_HELP, .token = h->token, .arg = warm}, theirs,
                1);
    else
        fd_close_all(theirs, 1);
    if (r < 0) {
        ends_close(&new);
        free(h);
        (void)err_sys(e, r, "start a helper");
        e->kind = r == -EMFILE || r == -ENFILE ? ERR_BUSY : ERR_HOST;
        return -1;
    }
    helper_keep(h, true);
    return 0;
}

static void on_spare(evutil_socket_t fd, short what, void *user)
{
    struct inner *in = user;
    struct err ignored;

    (void)fd, (void)what;
    if (!in->dead && in->idle_n == 0)
        (void)!helper_new(in, false, &ignored);
}

/* An idle helper that is alive: a tenant can kill them. */
static struct helper *idle_one(struct inner *in, bool warm, struct err *e)
{
    struct helper *h;
    char byte;

    if (warm) /* the new one is the first */
        return helper_new(in, true, e) < 0 ? NULL : TAILQ_FIRST(&in->idle);
    while ((h = TAILQ_FIRST(&in->idle))) {
        if (recv(h->ctl, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN)
            return h;
        helper_free(h);
    }
    return helper_new(in, false, e) < 0 ? NULL : TAILQ_FIRST(&in->idle);
}

/* Hands it the ends of a program. -EPIPE: it is dead. */
static int send_program(const struct helper *h, uint32_t terminal, struct sandbox *s)
{
    /* Where processes are few, one that ends by itself leaves room sooner. */
    const struct init_msg m = {
        .verb = HELP_RUN, .arg = !h->warm && h->inner->idle_max == IDLE_MAX, .size = terminal};
    int theirs[LAUNCH_FDS_PREPARE] = {-1, -1, -1, -1, -1};
    int r = ends_open(s, theirs, 1, LAUNCH_FDS_PREPARE);

    if (r == 0)
        r = fd_send(h->ctl, &m, sizeof m, theirs + 1, INIT_FDS_SPAWN);
    fd_close_all(theirs, LAUNCH_FDS_PREPARE);
    if (r < 0)
        ends_close(s);
    return r;
}

static int inner_take(struct jail *j, const struct sandbox_spec *s, struct sandbox *ret,
                      struct err *e)
{
    struct inner *in = inner_of(j);
    struct sandbox new = SANDBOX_NONE;
    struct helper *h = NULL;
    bool warm = template_is_persistent(s->template) && in->sandbox.template == s->template;
    int r = -EPIPE;

    if (in->dead)
        return err_set(e, ERR_HOST, "the sandbox has ended%s%s", in->failure[0] ? ": " : "",
                       in->failure);
    if (in->frozen && !in->conf.wake(in->conf.user))
        return err_set(e, ERR_BUSY, "the sandbox is paused");
    for (int i = 0; i < TRIES_MAX && r == -EPIPE; i++) {
        h = idle_one(in, warm && i == 0, e);
        if (!h)
            return -1;
        r = s->control_only ? 0 : send_program(h, s->terminal, &new);
        if (r < 0)
            helper_free(h);
    }
    if (r < 0) {
        (void)err_sys(e, r, "start a program");
        e->kind = r == -EMFILE || r == -ENFILE || r == -EPIPE ? ERR_BUSY : ERR_HOST;
        return -1;
    }
    (void)event_del(&h->gone);
    helper_unlink(h);
    h->idle = false;
    h->program = !s->control_only;
    TAILQ_INSERT_TAIL(&in->helpers, h, link);
    h->oom = h->program ? oom_kills(in) : 0;
    new.ctl = take_fd(&h->ctl);
    new.id = h->token;
    new.lives_on = true;
    new.start_ms = in->conf.start_ms;
    new.adapter = h;
    *ret = new;
    if (in->idle_n == 0)
        event_active(&in->spare, EV_TIMEOUT, 0);
    return 0;
}

/* Of one program its helper reports what was used; kills by the memory limit are only counted for
 * the whole sandbox. */
static bool inner_usage_of(struct jail *j, const struct sandbox *s, bool denied, struct usage *ret)
{
    const struct helper *h = s->adapter;

    (void)denied;
    *ret = USAGE_UNKNOWN;
    ret->oom_kills = oom_kills(inner_of(j)) - h->oom;
    return true;
}

static bool inner_alone(struct jail *j, const struct sandbox *s)
{
    (void)j, (void)s;
    return false;
}

static void inner_kill_helper(struct jail *j, const struct sandbox *s)
{
    (void)j;
    helper_kill(s->adapter);
}

/* One that is through with its program, or looked after a file and is alive and silent, waits for
 * the next request. */
static void inner_release(struct jail *j, struct sandbox *s)
{
    struct helper *h = s->adapter;
    int ctl = take_fd(&s->ctl);
    bool idle, given_up = s->given_up;
    ssize_t got = -EAGAIN;
    char byte;

    (void)j;
    ends_close(s);
    *s = SANDBOX_NONE;
    if (!h)
        return;
    helper_unlink(h);
    h->ctl = ctl;
    idle = h->program
               ? is_done(h, &got)
               : !given_up && recv(ctl, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
    if (got == 0)
        idle_discard(h->inner);
    if (idle && !may_idle(h)) {
        (void)close(h->ctl);
        free(h);
        return;
    }
    h->program &= !idle;
    helper_keep(h, idle);
}

static const char *inner_failure_of(struct jail *j, const struct sandbox *s)
{
    const struct inner *in = inner_of(j);

    (void)s;
    return !in->dead ? "" : in->failure[0] ? in->failure : "the sandbox has ended";
}

/* ---- the sandbox ---- */

static void on_tell(evutil_socket_t fd, short what, void *user)
{
    struct inner *in = user;

    (void)fd, (void)what;
    in->conf.dead(in->conf.user);
}

/* The control sockets of helpers end by themselves: their processes are dead. */
static void on_dead(struct inner *in)
{
    const char *why = in->conf.jail->ops->failure(in->conf.jail, &in->sandbox);

    (void)event_del(&in->ctl);
    outbox_close(&in->outbox);
    in->dead = true;
    if (!in->failure[0] && why)
        (void)snprintf(in->failure, sizeof in->failure, "%s", why);
    event_active(&in->tell, EV_TIMEOUT, 0);
}

static void on_ready(struct inner *in)
{
    struct err e;

    in->ready = true;
    if (in->frozen && in->conf.jail->ops->freeze(in->conf.jail, &in->sandbox, true, &e) < 0) {
        (void)snprintf(in->failure, sizeof in->failure, "%.*s", (int)sizeof in->failure - 1,
                       e.text);
        on_dead(in);
    }
}

static void on_ctl(evutil_socket_t fd, short what, void *user)
{
    struct {
        struct init_msg m;
        char words[INIT_NAME_MAX];
    } got;
    struct inner *in = user;
    cleanup_close int passed = -1;
    size_t passed_n = 1;
    ssize_t n = fd_recv(fd, &got, sizeof got, &passed, &passed_n);

    (void)what;
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (passed_n == 0)
        passed = -1;
    if (n < (ssize_t)sizeof got.m || got.m.name_n != (size_t)n - sizeof got.m)
        on_dead(in);
    else if (got.m.verb == INIT_FAILED)
        (void)snprintf(in->failure, sizeof in->failure, "%.*s", (int)got.m.name_n, got.words);
    else if (got.m.verb == INIT_LISTENING)
        in->conf.listening(in->conf.user, (uint32_t)got.m.arg,
                           passed >= 0 ? take_fd(&passed) : -got.m.status);
    else if (got.m.verb == INIT_READY) {
        in->writable = (unsigned)got.m.arg;
        on_ready(in);
    }
}

int inner_freeze(struct jail *j, bool frozen, struct err *e)
{
    struct inner *in = inner_of(j);

    if (in->dead)
        return err_set(e, ERR_ABSENT, "the sandbox has ended");
    if (!in->conf.jail->freezes)
        return err_set(e, ERR_DENIED,
                       "this host cannot pause sandboxes: it has no control groups "
                       "that freeze processes");
    if (in->ready && in->conf.jail->ops->freeze(in->conf.jail, &in->sandbox, frozen, e) < 0)
        return -1;
    in->frozen = frozen; /* one that is still being made: on_ready() does it */
    return 0;
}

void inner_kill(struct jail *j)
{
    struct inner *in = inner_of(j);

    if (!in->dead)
        in->conf.jail->ops->kill(in->conf.jail, &in->sandbox);
}

static void inner_close(struct jail *j)
{
    struct inner *in = inner_of(j);
    struct helper *h;

    inner_kill(j);
    while ((h = TAILQ_FIRST(&in->helpers)) || (h = TAILQ_FIRST(&in->idle)))
        helper_free(h);
    (void)event_del(&in->spare);
    (void)event_del(&in->ctl);
    (void)event_del(&in->tell);
    outbox_close(&in->outbox);
    in->conf.jail->ops->release(in->conf.jail, &in->sandbox);
    free(in);
}

static const struct jail_ops ops = {
    .name = "inner",
    .take = inner_take,
    .usage = inner_usage_of,
    .alone = inner_alone,
    .kill = inner_kill_helper,
    .release = inner_release,
    .failure = inner_failure_of,
    .close = inner_close,
};

int inner_open(const struct inner_conf *conf, struct jail **ret, struct err *e)
{
    struct inner *in = calloc(1, sizeof *in);

    if (!in)
        return err_set(e, ERR_HOST, "no memory for a sandbox");
    in->jail.ops = &ops;
    in->jail.traits = conf->jail->traits;
    in->conf = *conf;
    in->sandbox = SANDBOX_NONE;
    TAILQ_INIT(&in->helpers);
    TAILQ_INIT(&in->idle);
    (void)evtimer_assign(&in->spare, conf->base, on_spare, in);
    outbox_init(&in->outbox);
    if (conf->jail->ops->take(conf->jail, &conf->spec, &in->sandbox, e) < 0) {
        free(in);
        return -1;
    }
    in->writable = in->sandbox.writable; /* of one that was ready before */
    in->ready = in->sandbox.warm;
    in->idle_max = conf->spec.limits->pids_max / IDLE_SHARE;
    if (conf->spec.limits->pids_max == 0 || in->idle_max > IDLE_MAX)
        in->idle_max = IDLE_MAX;
    in->conf.spec.limits = NULL; /* it was borrowed for take() alone */
    int *const unused[] = {&in->sandbox.job, &in->sandbox.in, &in->sandbox.out, &in->sandbox.err};
    for (size_t i = 0; i < ARRAY_LEN(unused); i++)
        fd_close_all(unused[i], 1);
    outbox_open(&in->outbox, conf->base, in->sandbox.ctl);
    (void)evtimer_assign(&in->tell, conf->base, on_tell, in);
    (void)event_assign(&in->ctl, conf->base, in->sandbox.ctl, EV_READ | EV_PERSIST, on_ctl, in);
    if (event_add(&in->ctl, NULL) < 0) {
        inner_close(&in->jail);
        return err_set(e, ERR_HOST, "no memory to watch a sandbox");
    }
    *ret = &in->jail;
    return 0;
}

bool inner_is_dead(const struct jail *j)
{
    return ((const struct inner *)j)->dead;
}

const char *inner_failure(const struct jail *j)
{
    return ((const struct inner *)j)->failure;
}

int inner_listen(struct jail *j, uint32_t port, struct err *e)
{
    struct inner *in = inner_of(j);
    int r =
        in->dead ? -EPIPE : ask(in, &(struct init_msg){.verb = INIT_LISTEN, .arg = port}, NULL, 0);

    return r < 0 ? err_sys(e, r, "listen in a sandbox") : 0;
}

unsigned inner_writable(const struct jail *j)
{
    return ((const struct inner *)j)->writable;
}

size_t inner_helpers(const struct jail *j)
{
    const struct helper *h;
    size_t n = 0;

    TAILQ_FOREACH(h, &((const struct inner *)j)->helpers, link)
    n++;
    return n;
}

bool inner_usage(struct jail *j, struct usage *ret)
{
    struct inner *in = inner_of(j);

    return in->conf.jail->ops->usage(in->conf.jail, &in->sandbox, true, ret);
}
