/* SPDX-License-Identifier: MIT */
/*
 * A door: serves the listeners of one sandbox by one policy.
 *
 * It reads what tenants and hosts write, and so it can do next to nothing (lock.def): no socket, no
 * file, no process. A connection comes from the dialler, which has the policy, too.
 */
#include "egress/door.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/os.h"
#include "core/net_ports.h"
#include "egress/dns.h"
#include "egress/lock.h"
#include "egress/roles.h"

enum {
    EVENTS = 64,
    TICK_MS = 250,
    BATCH = 16, /* connections accepted in one turn */
    MEMORY = 160 << 20,
    FILES_FOR_ONE = 6, /* descriptors of a connection */
    FILES_MORE = 64,
    CONNECTIONS_MOST = 4096,
};

void door_arm(struct door *d, struct source *s, uint32_t want)
{
    struct epoll_event ev = {.events = want, .data.ptr = s};

    if (want == s->armed || s->fd < 0)
        return;
    (void)epoll_ctl(d->ep,
                    !want      ? EPOLL_CTL_DEL
                    : s->armed ? EPOLL_CTL_MOD
                               : EPOLL_CTL_ADD,
                    s->fd, &ev);
    s->armed = want;
}

/* ---- names ---- */

static void answer_name(struct door *d, const uint8_t *text, size_t n, uint8_t out[DNS_MAX],
                        size_t *ret_n)
{
    struct dns_question q;
    enum dns_code code = DNS_OK;
    uint32_t address = 0;

    *ret_n = 0;
    if (!dns_read(text, n, &q))
        return;
    if (!q.good)
        code = DNS_NO_NAME;
    else if (q.type == DNS_TYPE_A && q.class == DNS_CLASS_IN) {
        address = names_address(&d->names, q.name);
        code = address ? DNS_OK : DNS_REFUSED;
    }
    *ret_n = dns_answer(text, &q, code, address, out);
}

static void on_names(struct door *d, int fd)
{
    uint8_t text[DNS_MAX], out[DNS_MAX];
    struct sockaddr_in from;
    size_t out_n;

    for (int i = 0; i < BATCH; i++) {
        socklen_t from_n = sizeof from;
        ssize_t n =
            recvfrom(fd, text, sizeof text, MSG_DONTWAIT, (struct sockaddr *)&from, &from_n);

        if (n < 0)
            return;
        answer_name(d, text, (size_t)n, out, &out_n);
        if (out_n > 0)
            (void)!sendto(fd, out, out_n, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from,
                          from_n);
    }
}

/* ---- accepting ---- */

/* Programs beyond the limit wait in the backlog of their own namespace. */
static void listeners_arm(struct door *d)
{
    bool listens = d->conns_n < d->policy.connections_max && d->conns_n < CONNECTIONS_MOST;

    for (size_t i = 0; i < d->listeners_n && listens != d->listening; i++)
        if (d->listener[i].kind == SOURCE_LISTENER)
            door_arm(d, &d->listener[i], listens ? EPOLLIN : 0);
    d->listening = listens;
}

static void on_accept(struct door *d, const struct source *s)
{
    for (int i = 0; i < BATCH && d->conns_n < d->policy.connections_max; i++) {
        int fd = os_accept(s->fd);

        if (fd < 0)
            return;
        if (d->full)
            (void)close(fd);
        else
            conn_open(d, fd, s->port);
    }
}

/* ---- the daemon ---- */

static bool is_listener(int fd, bool datagram)
{
    int family = 0, listening = 0, type = 0;
    socklen_t n = sizeof family, k = sizeof listening, t = sizeof type;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) == 0 && family == AF_INET &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &t) == 0 &&
           (datagram ? type == SOCK_DGRAM
                     : getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &k) == 0 && listening);
}

static void serve(struct door *d, uint32_t port, int fd)
{
    bool datagram = port & NET_PORT_DATAGRAM;
    struct source *s = &d->listener[d->listeners_n];

    if (d->listeners_n == LISTENERS_MAX || !is_listener(fd, datagram) ||
        fd_nonblock(fd, true) < 0) {
        (void)close(fd);
        return;
    }
    *s = (struct source){
        .kind = datagram ? SOURCE_NAMES : SOURCE_LISTENER, .fd = fd, .port = (uint16_t)port};
    d->listeners_n++;
    door_arm(d, s, EPOLLIN);
}

static void change_done(struct door *d)
{
    struct egress_word w = {.verb = EGRESS_SET_DONE, .serial = d->serial};

    if (d->change_told || d->serial != d->serial_dialler)
        return;
    d->change_told = true;
    (void)!fd_send(d->daemon.fd, &w, sizeof w, NULL, 0);
}

static void change(struct door *d, const struct egress_order *m)
{
    struct conn *c, *next;

    d->policy = m->policy;
    d->serial = m->serial;
    d->change_told = false;
    for (c = LIST_FIRST(&d->conns); c; c = next) {
        next = LIST_NEXT(c, link);
        conn_judge(c);
    }
    change_done(d);
}

/* The largest message is a policy; a short one has only the beginning. */
union daemon_words {
    struct egress_word word;
    struct egress_order order;
};

static void on_daemon(struct door *d, union daemon_words *in)
{
    int fd = -1;
    size_t fds_n = 1;
    ssize_t n = fd_recv(d->daemon.fd, in, sizeof *in, &fd, &fds_n);

    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n == (ssize_t)sizeof in->order && in->order.verb == EGRESS_SET && fds_n == 0)
        change(d, &in->order);
    else if (n == (ssize_t)sizeof in->word && in->word.verb == EGRESS_SERVE && fds_n == 1)
        serve(d, in->word.port, fd);
    else if (n == (ssize_t)sizeof in->word && in->word.verb == EGRESS_ASK && fds_n == 0)
        account_tell(&d->account);
    else
        _exit(0);
}

/* ---- the dialler ---- */

static struct conn *conn_find(const struct door *d, uint32_t id)
{
    struct conn *c;

    LIST_FOREACH(c, &d->conns, link)
    if (c->id == id)
        return c;
    return NULL;
}

static void on_dialler(struct door *d)
{
    struct egress_dial m;
    struct conn *c;
    int fd = -1;
    size_t fds_n = 1;
    ssize_t n = fd_recv(d->dialler.fd, &m, sizeof m, &fd, &fds_n);

    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n != (ssize_t)sizeof m || m.verdict >= EGRESS_VERDICT_COUNT)
        _exit(0);
    if (m.verb == EGRESS_CHANGED) {
        d->serial_dialler = m.id;
        change_done(d);
        return;
    }
    c = conn_find(d, m.id);
    if (c)
        conn_dialled(c, m.verdict, fds_n ? fd : -1);
    else if (fds_n)
        (void)close(fd);
}

/* ---- the loop ---- */

static void quota(struct door *d)
{
    struct conn *c;

    if (d->full || d->account.bytes <= d->policy.bytes_max)
        return;
    d->full = true;
    while ((c = LIST_FIRST(&d->conns))) {
        if (c->named)
            (void)account_add(&d->account, c->name, c->port, EGRESS_QUOTA);
        conn_close(c);
    }
}

static void sweep(struct door *d)
{
    struct conn *c, *next;
    uint64_t now = clock_us();

    quota(d);
    for (c = LIST_FIRST(&d->conns); c; c = next) {
        next = LIST_NEXT(c, link);
        if (c->state != CONN_DIALLING && c->until_us < now)
            conn_expire(c);
    }
    while ((c = LIST_FIRST(&d->dead))) {
        LIST_REMOVE(c, link);
        flow_done(&c->up);
        flow_done(&c->down);
        free(c);
    }
    d->account.live = (uint32_t)d->conns_n;
    listeners_arm(d);
}

static void on_source(struct door *d, struct source *s, union daemon_words *room)
{
    switch (s->kind) {
    case SOURCE_DAEMON:
        on_daemon(d, room);
        break;
    case SOURCE_DIALLER:
        on_dialler(d);
        break;
    case SOURCE_LISTENER:
        on_accept(d, s);
        break;
    case SOURCE_NAMES:
        on_names(d, s->fd);
        break;
    case SOURCE_CONN:
        if (s->conn->state != CONN_DEAD)
            conn_event(s->conn);
        break;
    }
}

static void loop(struct door *d, union daemon_words *room)
{
    struct epoll_event events[EVENTS];
    uint64_t told = 0, bytes = 0;

    for (;;) {
        int n = epoll_wait(d->ep, events, EVENTS, d->conns_n > 0 ? TICK_MS : -1);

        for (int i = 0; i < n; i++)
            on_source(d, events[i].data.ptr, room);
        sweep(d);
        if (d->account.bytes != bytes && clock_us() - told > TICK_MS * 1000ull) {
            account_tell(&d->account);
            told = clock_us();
            bytes = d->account.bytes;
        }
    }
}

/* The address space is for the largest number of connections; what is used is another matter. */
static void bound(void)
{
    const rlim_t files = CONNECTIONS_MOST * FILES_FOR_ONE + FILES_MORE;
    struct rlimit now;

    (void)setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY, MEMORY});
    if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max > files)
        (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){files, files});
}

void door_run(int master)
{
    union daemon_words *room = calloc(1, sizeof *room);
    struct door *d = calloc(1, sizeof *d);
    int fds[2];
    struct err e = {.text = "no memory"};

    bound();
    if (!room || !d || lock_calls(LOCK_DOOR, &e) < 0) {
        (void)!write(STDERR_FILENO, e.text, strlen(e.text));
        _exit(1);
    }
    if (fd_recv_exact(master, &room->order, sizeof room->order, fds, 2) != 1)
        _exit(0);
    (void)close(master);
    d->policy = room->order.policy;
    d->serial = d->serial_dialler = room->order.serial;
    d->change_told = true;
    d->daemon = (struct source){.kind = SOURCE_DAEMON, .fd = fds[0]};
    d->dialler = (struct source){.kind = SOURCE_DIALLER, .fd = fds[1]};
    d->account.daemon = fds[0];
    d->listening = true;
    d->ep = epoll_create1(EPOLL_CLOEXEC);
    if (d->ep < 0 || fd_nonblock(fds[0], true) < 0 || fd_nonblock(fds[1], true) < 0)
        _exit(1);
    door_arm(d, &d->daemon, EPOLLIN);
    door_arm(d, &d->dialler, EPOLLIN);
    loop(d, room);
    _exit(0);
}
