/* SPDX-License-Identifier: MIT */
/*
 * The only process that makes connections for sandboxes.
 *
 *   DIAL ─▶ asked again: may this door reach name and port? ─▶ addresses, maybe known ─▶ each one
 * is looked at ─▶ connect to the first that may be and answers ─▶ DIALLED with the socket
 *
 * What was looked at is what is connected to: a name is looked up once, and its addresses stay
 * those of the door for a while. A door is believed nothing: its policy came from the master.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/os.h"
#include "egress/address.h"
#include "egress/lock.h"
#include "egress/resolve.h"
#include "egress/roles.h"
#include "wire/egress_words.h"

enum {
    EVENTS = 64,
    PINS_MAX = 64,
    TICK_MS = 250,
    US_PER_MS = 1000,
    US_PER_S = 1000000,
    DIALS_MAX = 512, /* of one door at the same time */
};

/* What an event is of; the first member of what it is. */
enum source_kind { SOURCE_MASTER, SOURCE_RESOLVER, SOURCE_DOOR, SOURCE_DIAL };
struct source {
    enum source_kind kind;
    int fd;
    bool dead;
};

struct pin {
    uint64_t until_us;
    struct lookup found;
};

struct door {
    struct source source; /* first */
    LIST_ENTRY(door) link;
    uint32_t id, serial;
    struct egress_policy *policy; /* owned */
    struct pin *pins[PINS_MAX];   /* owned */
    size_t dials, next_pin;
};

struct dial {
    struct source source; /* first; fd: the connection that is being made */
    LIST_ENTRY(dial) link;
    struct door *door; /* borrowed; NULL: it is gone */
    struct egress_dial what;
    struct lookup look;
    bool looking, any_address;
    size_t tried;
    uint64_t until_us;
    enum egress_verdict verdict; /* if no address is left */
};

struct dialler {
    int ep;
    struct source master, resolved;
    struct resolver *resolver;
    struct own_addresses own;
    LIST_HEAD(, door) doors, dead_doors;
    LIST_HEAD(, dial) dials, dead_dials;
};

static int watch(struct dialler *d, struct source *s, uint32_t what)
{
    struct epoll_event ev = {.events = what, .data.ptr = s};

    return epoll_ctl(d->ep, EPOLL_CTL_ADD, s->fd, &ev);
}

/* ---- the end of a dial ---- */

static void door_end(struct dialler *d, struct door *o);

static void dial_end(struct dialler *d, struct dial *dial, enum egress_verdict v, int fd)
{
    struct door *o = dial->door;

    if (o) {
        dial->what.verb = EGRESS_DIALLED;
        dial->what.verdict = (uint16_t)v;
        o->dials--;
        /* One that does not take its answers is of no use to anybody. */
        if (fd_send(o->source.fd, &dial->what, sizeof dial->what, &fd, v == EGRESS_ALLOWED) < 0)
            door_end(d, o);
    }
    dial->door = NULL;
    closep(&dial->source.fd);
    dial->source.fd = -1;
    if (dial->looking || dial->source.dead) /* a thread has it still */
        return;
    dial->source.dead = true;
    LIST_REMOVE(dial, link);
    LIST_INSERT_HEAD(&d->dead_dials, dial, link);
}

/* ---- connecting ---- */

static bool net_listed(const struct egress_net *nets, size_t n, const struct sockaddr *a)
{
    for (size_t i = 0; i < n; i++)
        if (egress_net_has(&nets[i], a))
            return true;
    return false;
}

static bool may_connect(const struct dialler *d, const struct dial *dial, const struct sockaddr *a)
{
    const struct egress_policy *p = dial->door->policy;

    if (dial->any_address)
        return true;
    if (net_listed(p->deny, p->deny_n, a))
        return false;
    if (net_listed(p->private, p->private_n, a))
        return true;
    return address_is_public(a) && !own_addresses_have(&d->own, a);
}

static void set_port(struct address *a, uint16_t port)
{
    if (a->at.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&a->at)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&a->at)->sin_port = htons(port);
}

/* 1: connected; 0: under way; -1: not. */
static int connect_one(struct dialler *d, struct dial *dial, struct address *a)
{
    int r;

    set_port(a, dial->what.port);
    dial->source.fd = os_socket(a->at.ss_family, SOCK_STREAM, 0);
    if (dial->source.fd < 0)
        return -1;
    r = connect(dial->source.fd, (struct sockaddr *)&a->at, a->n);
    if (r == 0)
        return 1;
    if (errno == EINPROGRESS && watch(d, &dial->source, EPOLLOUT) == 0)
        return 0;
    closep(&dial->source.fd);
    dial->source.fd = -1;
    return -1;
}

static void connect_next(struct dialler *d, struct dial *dial)
{
    while (dial->tried < dial->look.n) {
        struct address *a = &dial->look.v[dial->tried++];
        int r;

        if (!may_connect(d, dial, (struct sockaddr *)&a->at)) {
            if (dial->verdict == EGRESS_UNRESOLVED)
                dial->verdict = EGRESS_PRIVATE_ADDRESS;
            continue;
        }
        dial->verdict = EGRESS_UNREACHABLE;
        r = connect_one(d, dial, a);
        if (r == 1)
            dial_end(d, dial, EGRESS_ALLOWED, dial->source.fd);
        if (r >= 0)
            return;
    }
    dial_end(d, dial, dial->verdict, -1);
}

static void on_connected(struct dialler *d, struct dial *dial)
{
    int error = 0;
    socklen_t n = sizeof error;

    if (getsockopt(dial->source.fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0) {
        (void)epoll_ctl(d->ep, EPOLL_CTL_DEL, dial->source.fd, NULL);
        dial_end(d, dial, EGRESS_ALLOWED, dial->source.fd);
        return;
    }
    closep(&dial->source.fd);
    dial->source.fd = -1;
    connect_next(d, dial);
}

/* ---- names ---- */

static const struct lookup *pinned(const struct door *o, const char *host)
{
    for (size_t i = 0; i < PINS_MAX; i++)
        if (o->pins[i] && o->pins[i]->until_us > clock_us() &&
            strcmp(o->pins[i]->found.host, host) == 0)
            return &o->pins[i]->found;
    return NULL;
}

static void pin(struct door *o, const struct lookup *l)
{
    struct pin **at = &o->pins[o->next_pin++ % PINS_MAX];

    if (!*at)
        *at = malloc(sizeof **at);
    if (*at)
        **at = (struct pin){clock_us() + (uint64_t)o->policy->pin_s * US_PER_S, *l};
}

static void on_resolved(struct dialler *d)
{
    struct lookup *l;

    while ((l = resolver_take(d->resolver))) {
        struct dial *dial = container_of(l, struct dial, look);

        dial->looking = false;
        if (!dial->door) {
            dial_end(d, dial, EGRESS_BUSY, -1);
            continue;
        }
        if (l->n > 0)
            pin(dial->door, l);
        connect_next(d, dial);
    }
}

/* ---- doors ---- */

static void dial_begin(struct dialler *d, struct door *o, const struct egress_dial *what)
{
    struct dial *dial = o->dials < DIALS_MAX ? calloc(1, sizeof *dial) : NULL;
    struct egress_dial answer = *what;
    enum egress_verdict v = EGRESS_BUSY;
    const struct lookup *known;
    bool any = false;

    if (dial) {
        v = egress_look(o->policy, what->host, what->port, &any);
        if (v == EGRESS_METHOD || v == EGRESS_PATH) /* the door looks at every request */
            v = egress_look_http(o->policy, what->host, what->port);
    }
    if (v != EGRESS_ALLOWED) {
        free(dial);
        answer.verb = EGRESS_DIALLED;
        answer.verdict = (uint16_t)v;
        if (fd_send(o->source.fd, &answer, sizeof answer, NULL, 0) < 0)
            door_end(d, o);
        return;
    }
    *dial = (struct dial){
        .source = {SOURCE_DIAL, -1, false},
        .door = o,
        .what = *what,
        .any_address = any,
        .until_us = clock_us() + (uint64_t)o->policy->dial_ms * US_PER_MS,
        .verdict = EGRESS_UNRESOLVED
    };
    o->dials++;
    LIST_INSERT_HEAD(&d->dials, dial, link);
    own_addresses_read(&d->own);
    known = pinned(o, what->host);
    if (known) {
        dial->look = *known;
        connect_next(d, dial);
        return;
    }
    memcpy(dial->look.host, what->host, sizeof dial->look.host);
    dial->looking = true;
    resolver_ask(d->resolver, &dial->look);
}

static void door_read(struct dialler *d, struct door *o)
{
    struct egress_dial what;
    int r = fd_recv_exact(o->source.fd, &what, sizeof what, NULL, 0);

    if (r == -EAGAIN)
        return;
    what.host[EGRESS_NAME_MAX] = '\0';
    if (r != 1 || what.verb != EGRESS_DIAL)
        door_end(d, o);
    else
        dial_begin(d, o, &what);
}

static void door_end(struct dialler *d, struct door *o)
{
    struct dial *dial, *next;

    if (o->source.dead)
        return;
    o->source.dead = true;
    closep(&o->source.fd);
    LIST_REMOVE(o, link);
    LIST_INSERT_HEAD(&d->dead_doors, o, link);
    for (dial = LIST_FIRST(&d->dials); dial; dial = next) {
        next = LIST_NEXT(dial, link);
        if (dial->door != o)
            continue;
        dial->door = NULL;
        dial_end(d, dial, EGRESS_BUSY, -1);
    }
}

static void door_new(struct dialler *d, const struct egress_order *m, int fd)
{
    struct door *o = calloc(1, sizeof *o);

    if (o)
        o->policy = malloc(sizeof *o->policy);
    if (!o || !o->policy || fd_nonblock(fd, true) < 0) {
        (void)close(fd); /* the door sees it and ends */
        free(o ? o->policy : NULL);
        free(o);
        return;
    }
    o->source = (struct source){SOURCE_DOOR, fd, false};
    o->id = m->id;
    o->serial = m->serial;
    *o->policy = m->policy;
    LIST_INSERT_HEAD(&d->doors, o, link);
    if (watch(d, &o->source, EPOLLIN) < 0)
        door_end(d, o);
}

/* What is being connected is looked at again: nothing is handed out by the old policy. */
static void door_change(struct dialler *d, const struct egress_order *m)
{
    struct egress_dial told = {.verb = EGRESS_CHANGED, .id = m->serial};
    struct dial *dial, *next;
    struct door *o;

    LIST_FOREACH(o, &d->doors, link)
    if (o->id == m->id)
        break;
    if (!o)
        return;
    *o->policy = m->policy;
    o->serial = m->serial;
    for (dial = LIST_FIRST(&d->dials); dial; dial = next) {
        next = LIST_NEXT(dial, link);
        if (dial->door == o)
            dial_end(d, dial, EGRESS_NOT_ALLOWED, -1);
    }
    if (!o->source.dead && fd_send(o->source.fd, &told, sizeof told, NULL, 0) < 0)
        door_end(d, o);
}

static void master_read(struct dialler *d, struct egress_order *m)
{
    int fd = -1;
    size_t n = 1;
    ssize_t got = fd_recv(d->master.fd, m, sizeof *m, &fd, &n);

    if (got == -EAGAIN || got == -EINTR)
        return;
    if (got != sizeof *m)
        _exit(0);
    if (m->verb == EGRESS_OPEN && n == 1)
        door_new(d, m, fd);
    else if (m->verb == EGRESS_CHANGE && n == 0)
        door_change(d, m);
    else
        _exit(1);
}

/* ---- the loop ---- */

static void sweep(struct dialler *d)
{
    struct dial *dial, *next;
    struct door *o;
    uint64_t now = clock_us();

    for (dial = LIST_FIRST(&d->dials); dial; dial = next) {
        next = LIST_NEXT(dial, link);
        if (dial->door && dial->until_us < now)
            dial_end(d, dial,
                     dial->verdict == EGRESS_PRIVATE_ADDRESS ? dial->verdict : EGRESS_UNREACHABLE,
                     -1);
    }
    while ((dial = LIST_FIRST(&d->dead_dials))) {
        LIST_REMOVE(dial, link);
        free(dial);
    }
    while ((o = LIST_FIRST(&d->dead_doors))) {
        LIST_REMOVE(o, link);
        for (size_t i = 0; i < PINS_MAX; i++)
            free(o->pins[i]);
        free(o->policy);
        free(o);
    }
}

static void on_source(struct dialler *d, struct source *s, struct egress_order *room)
{
    if (s->dead)
        return;
    switch (s->kind) {
    case SOURCE_MASTER:
        master_read(d, room);
        break;
    case SOURCE_RESOLVER:
        on_resolved(d);
        break;
    case SOURCE_DOOR:
        door_read(d, container_of(s, struct door, source));
        break;
    case SOURCE_DIAL:
        if (s->fd >= 0)
            on_connected(d, container_of(s, struct dial, source));
        break;
    }
}

static void loop(struct dialler *d)
{
    struct egress_order *room = calloc(1, sizeof *room);
    struct epoll_event events[EVENTS];

    if (!room)
        _exit(1);
    for (;;) {
        int n = epoll_wait(d->ep, events, EVENTS, LIST_EMPTY(&d->dials) ? -1 : TICK_MS);

        for (int i = 0; i < n; i++)
            on_source(d, events[i].data.ptr, room);
        sweep(d);
    }
}

void dialler_run(int master, const char *hosts)
{
    struct dialler *d = calloc(1, sizeof *d);
    struct err e = {.text = "no memory"};

    if (d && resolver_open(hosts, &d->resolver, &e) == 0 && lock_dialler(&e) == 0 &&
        resolver_start(d->resolver, &e) == 0) {
        d->ep = epoll_create1(EPOLL_CLOEXEC);
        d->master = (struct source){SOURCE_MASTER, master, false};
        d->resolved = (struct source){SOURCE_RESOLVER, resolver_fd(d->resolver), false};
        if (d->ep >= 0 && fd_nonblock(master, true) == 0 && watch(d, &d->master, EPOLLIN) == 0 &&
            watch(d, &d->resolved, EPOLLIN) == 0)
            loop(d);
    }
    (void)fprintf(stderr, "sandbox-egress: dialler: %s\n", e.text);
    _exit(1);
}
