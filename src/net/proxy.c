/* SPDX-License-Identifier: MIT */
#include "net/proxy.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/os.h"

enum {
    LISTENERS_MAX = 4,
    BACKLOG = 1024,
    BATCH = 64,          /* connections accepted in one turn */
    PAUSE_MS = 100,      /* out of descriptors: try again then */
    UNBOUND_MS = 100,    /* a caller without a target gets that long */
    PIPE_SIZE = 1 << 20, /* moved at once */
    PIPES_SPARE = 64,    /* kept for the next that needs one */
    ROUNDS = 16,         /* fills of a pipe before others get their turn */
    PORT_TRIES = 16,
};

/* One direction. A pipe is held only while something is in it. */
struct half {
    struct proxy_conn *conn; /* borrowed */
    int from, to;            /* borrowed from the connection */
    int pipe[2];             /* owned; -1: none */
    size_t held;             /* bytes in it */
    bool eof, ended;         /* read to its end; and passed on */
    struct event readable, writable;
};

struct proxy_conn {
    LIST_ENTRY(proxy_conn) link;
    struct proxy *proxy;  /* borrowed */
    int client, target;   /* owned */
    bool dialling, gone;  /* gone: nobody wants the target any more */
    bool joined, waiting; /* waiting: without a target */
    struct half up, down;
    struct event unbound;
};

struct proxy {
    struct proxy_conf conf;
    struct event *listener[LISTENERS_MAX]; /* owned, with their descriptors */
    size_t listeners_n;
    uint16_t port;
    LIST_HEAD(proxy_conns, proxy_conn) conns;
    uint32_t n;
    int pipes[PIPES_SPARE][2]; /* owned: empty ones */
    size_t pipes_n;
    struct event accept_again;
};

/* ---- pipes ---- */

static int pipe_take(struct proxy *p, int ret[2])
{
    if (p->pipes_n > 0) {
        memcpy(ret, p->pipes[--p->pipes_n], sizeof p->pipes[0]);
        return 0;
    }
    return os_tube(ret);
}

static void pipe_give(struct proxy *p, struct half *h)
{
    if (h->pipe[0] < 0)
        return;
    if (h->held == 0 && p->pipes_n < PIPES_SPARE) {
        memcpy(p->pipes[p->pipes_n++], h->pipe, sizeof h->pipe);
        h->pipe[0] = h->pipe[1] = -1;
        return;
    }
    fd_close_all(h->pipe, 2);
}

/* ---- connections ---- */

static void half_stop(struct half *h)
{
    if (!h->conn)
        return;
    (void)event_del(&h->readable);
    (void)event_del(&h->writable);
    pipe_give(h->conn->proxy, h);
}

/* One that is being dialled stays in memory until the answer has come. */
static void conn_close(struct proxy_conn *c)
{
    half_stop(&c->up);
    half_stop(&c->down);
    (void)event_del(&c->unbound);
    fd_close_all(&c->client, 1);
    fd_close_all(&c->target, 1);
    c->gone = true;
    if (c->dialling)
        return;
    LIST_REMOVE(c, link);
    c->proxy->n--;
    free(c);
}

/* ---- moving bytes ---- */

enum moved { MOVED_SOME, MOVED_NOTHING, MOVED_END, MOVED_FAILED };

static enum moved fill(struct half *h)
{
    ssize_t n;

    if (h->pipe[0] < 0 && pipe_take(h->conn->proxy, h->pipe) < 0)
        return MOVED_FAILED;
    do
        n = os_move(h->from, h->pipe[1], PIPE_SIZE);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? MOVED_NOTHING : MOVED_FAILED;
    if (n == 0)
        return MOVED_END;
    h->held += (size_t)n;
    return MOVED_SOME;
}

static enum moved drain(struct half *h)
{
    while (h->held > 0) {
        ssize_t n = os_move(h->pipe[0], h->to, h->held);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? MOVED_NOTHING : MOVED_FAILED;
        h->held -= (size_t)n;
    }
    return MOVED_SOME;
}

/* As far as it goes in one turn. False: the connection is broken. */
static bool move(struct half *h)
{
    for (int i = 0; i < ROUNDS; i++) {
        enum moved m = drain(h);

        if (m == MOVED_FAILED)
            return false;
        if (m == MOVED_NOTHING)
            return true; /* still held: wait for room */
        if (h->eof)
            return true;
        m = fill(h);
        if (m == MOVED_FAILED)
            return false;
        if (m == MOVED_NOTHING)
            return true;
        h->eof = m == MOVED_END;
    }
    return true;
}

/* Waits for what is missing: room if something is held, else bytes. */
static void half_arm(struct half *h)
{
    if (h->held > 0) {
        (void)event_del(&h->readable);
        (void)event_add(&h->writable, NULL);
    } else {
        pipe_give(h->conn->proxy, h);
        (void)event_del(&h->writable);
        if (!h->eof)
            (void)event_add(&h->readable, NULL);
    }
}

static void half_run(struct half *h)
{
    struct proxy_conn *c = h->conn;

    if (!move(h)) {
        conn_close(c);
        return;
    }
    if (h->eof && h->held == 0 && !h->ended) {
        h->ended = true;
        (void)shutdown(h->to, SHUT_WR);
        (void)event_del(&h->readable);
    }
    half_arm(h);
    if (c->up.ended && c->down.ended)
        conn_close(c);
}

static void on_movable(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    half_run(user);
}

static void half_start(struct half *h, struct proxy_conn *c, int from, int to)
{
    struct event_base *base = c->proxy->conf.base;

    *h = (struct half){
        .conn = c, .from = from, .to = to, .pipe = {-1, -1}
    };
    (void)event_assign(&h->readable, base, from, EV_READ | EV_PERSIST, on_movable, h);
    (void)event_assign(&h->writable, base, to, EV_WRITE | EV_PERSIST, on_movable, h);
    (void)event_add(&h->readable, NULL);
}

static void set_options(int fd)
{
    const int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}

void proxy_joined(struct proxy_conn *c, int fd)
{
    c->dialling = false;
    c->target = fd;
    if (c->gone || fd < 0) {
        conn_close(c);
        return;
    }
    set_options(fd);
    half_start(&c->up, c, c->client, c->target);
    half_start(&c->down, c, c->target, c->client);
}

/* ---- accepting ---- */

/* A check whether the port answers; whatever it sends is not for us. */
static void on_unbound(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    conn_close(user);
}

static void wait_unbound(struct proxy_conn *c)
{
    const struct timeval tv = {.tv_usec = UNBOUND_MS * 1000};

    (void)event_assign(&c->unbound, c->proxy->conf.base, c->client, EV_READ, on_unbound, c);
    (void)event_add(&c->unbound, &tv);
}

static void welcome(struct proxy *p, int fd)
{
    cleanup_close int client = fd;
    struct proxy_conn *c = p->n < p->conf.connections_max ? calloc(1, sizeof *c) : NULL;
    enum proxy_dial d;

    if (!c)
        return;
    set_options(client);
    c->proxy = p;
    c->client = take_fd(&client);
    c->target = -1;
    c->dialling = true;
    (void)evtimer_assign(&c->unbound, p->conf.base, on_unbound, c);
    LIST_INSERT_HEAD(&p->conns, c, link);
    p->n++;
    d = p->conf.dial(p->conf.user, c);
    if (d == PROXY_DIALLING)
        return;
    c->dialling = false;
    if (d == PROXY_UNBOUND)
        wait_unbound(c);
    else
        conn_close(c);
}

static void listen_all(struct proxy *p, bool on)
{
    for (size_t i = 0; i < p->listeners_n; i++) {
        if (on)
            (void)event_add(p->listener[i], NULL);
        else
            (void)event_del(p->listener[i]);
    }
}

static void on_accept_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    listen_all(user, true);
}

static void on_accept(evutil_socket_t fd, short what, void *user)
{
    const struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
    struct proxy *p = user;

    (void)what;
    for (int i = 0; i < BATCH; i++) {
        int client = os_accept(fd);

        if (client >= 0) {
            welcome(p, client);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            listen_all(p, false); /* the listener stays readable: the loop would spin */
            (void)event_add(&p->accept_again, &pause);
        }
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

/* ---- listening ---- */

static void set_port(struct addrinfo *a, uint16_t port)
{
    if (a->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)a->ai_addr)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)a->ai_addr)->sin_port = htons(port);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_in6 a = {0}; /* the port is at the same place in both families */
    socklen_t n = sizeof a;

    return getsockname(fd, (struct sockaddr *)&a, &n) < 0 ? 0 : ntohs(a.sin6_port);
}

static int listen_one(struct proxy *p, struct addrinfo *a)
{
    cleanup_close int fd = os_socket(a->ai_family, SOCK_STREAM, 0);
    const int one = 1;
    struct event *ev;

    if (fd < 0)
        return -errno;
    set_port(a, p->port ? p->port : p->conf.port);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    ev = event_new(p->conf.base, fd, EV_READ | EV_PERSIST, on_accept, p);
    if (!ev)
        return -ENOMEM;
    p->port = p->port ? p->port : port_of(fd);
    p->listener[p->listeners_n++] = ev;
    (void)take_fd(&fd);
    return 0;
}

static void unlisten(struct proxy *p)
{
    for (size_t i = 0; i < p->listeners_n; i++) {
        int fd = event_get_fd(p->listener[i]);

        event_free(p->listener[i]);
        (void)close(fd);
    }
    p->listeners_n = 0;
    p->port = 0;
}

/* A kernel without an address family has no such address either. */
static int listen_list(struct proxy *p, struct addrinfo *list)
{
    int r = -EADDRNOTAVAIL;

    for (struct addrinfo *a = list; a && p->listeners_n < LISTENERS_MAX; a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
            continue;
        r = listen_one(p, a);
        if (r < 0 && r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL)
            return r;
    }
    return p->listeners_n > 0 ? 0 : r;
}

static int listen_on(struct proxy *p, struct err *e)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    const char *host = p->conf.host;
    bool all = !*host || strcmp(host, "*") == 0 || strcmp(host, "::") == 0;
    struct addrinfo *list = NULL;
    int r = getaddrinfo(all ? NULL : host, "0", &hints, &list);

    if (r != 0)
        return err_set(e, ERR_CALLER, "proxy address '%s': %s", host, gai_strerror(r));
    r = listen_list(p, list);
    for (int i = 1; r == -EADDRINUSE && p->conf.port == 0 && i < PORT_TRIES; i++) {
        unlisten(p); /* chosen for one family, taken in the other */
        r = listen_list(p, list);
    }
    freeaddrinfo(list);
    return r < 0 ? err_sys(e, r, "proxy port %u", p->conf.port) : 0;
}

int proxy_open(const struct proxy_conf *conf, struct proxy **ret, struct err *e)
{
    struct proxy *p = calloc(1, sizeof *p);

    if (!p)
        return err_set(e, ERR_HOST, "no memory for the proxy");
    p->conf = *conf;
    LIST_INIT(&p->conns);
    (void)evtimer_assign(&p->accept_again, conf->base, on_accept_again, p);
    if (listen_on(p, e) < 0) {
        proxy_close(p);
        return -1;
    }
    p->conf.host = NULL; /* borrowed for the call only */
    listen_all(p, true);
    *ret = p;
    return 0;
}

void proxy_close(struct proxy *p)
{
    struct proxy_conn *c;

    if (!p)
        return;
    unlisten(p);
    (void)event_del(&p->accept_again);
    while ((c = LIST_FIRST(&p->conns))) {
        c->dialling = false;
        conn_close(c);
    }
    for (size_t i = 0; i < p->pipes_n; i++)
        fd_close_all(p->pipes[i], 2);
    free(p);
}

uint16_t proxy_port(const struct proxy *p)
{
    return p->port;
}
