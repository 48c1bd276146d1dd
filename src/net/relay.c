/* SPDX-License-Identifier: MIT */
#include "net/relay.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/fd.h"
#include "base/os.h"
#include "net/relay_head.h"

enum {
    HEAD_S = 15,           /* a request must be complete by then */
    DIAL_S = 10,           /* an address must answer by then */
    SILENT_S = 120,        /* a connection that moves nothing for so long is closed */
    LINGER_S = 2,          /* a client that was answered may read that long */
    HELD_MAX = 256 * 1024, /* bytes waiting in one direction */
    BATCH = 16,            /* connections accepted in one turn */
    PAUSE_MS = 100,        /* out of descriptors: try again then */
    TARGET_MAX = 300,
    PART_MAX = 64 * 1024,
};

enum conn_state { CONN_HEAD, CONN_DIALLING, CONN_FLOWING, CONN_LINGERING };

struct conn {
    LIST_ENTRY(conn) link;
    struct relay *relay; /* borrowed */
    enum conn_state state;
    bool tunnel;
    struct bufferevent *program, *host;
    const struct relay_host *target; /* borrowed */
    size_t tried;                    /* addresses */
    struct buf request;              /* for the host, until it is there */
};

struct relay {
    struct relay_conf conf;
    struct event *listener, *again; /* owned; the listener with its descriptor */
    LIST_HEAD(conns, conn) conns;
    size_t n;
    uint64_t bytes;
    bool full;
};

/* ---- connections ---- */

static void conn_free(struct conn *c)
{
    LIST_REMOVE(c, link);
    c->relay->n--;
    if (c->program)
        bufferevent_free(c->program);
    if (c->host)
        bufferevent_free(c->host);
    buf_done(&c->request);
    free(c);
}

/* How long a side may say or take nothing; reads 0: it may be silent as long as it likes. */
static void set_silence(struct bufferevent *b, int reads, int writes)
{
    const struct timeval r = {.tv_sec = reads}, w = {.tv_sec = writes};

    bufferevent_set_timeouts(b, reads ? &r : NULL, &w);
}

/* Whatever was said to the program is written out; what it still says is not read by anybody. */
static void linger(struct conn *c)
{
    c->state = CONN_LINGERING;
    if (c->host)
        bufferevent_free(c->host);
    c->host = NULL;
    set_silence(c->program, LINGER_S, LINGER_S);
    (void)bufferevent_enable(c->program, EV_READ | EV_WRITE);
    if (evbuffer_get_length(bufferevent_get_output(c->program)) == 0)
        (void)shutdown(bufferevent_getfd(c->program), SHUT_WR);
}

static void answer(struct conn *c, const char *status, const char *words)
{
    (void)evbuffer_add_printf(bufferevent_get_output(c->program),
                              "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                              "Connection: close\r\n\r\n%s",
                              status, strlen(words), words);
    linger(c);
}

static void count(struct relay *r, size_t n)
{
    r->bytes += n;
    if (r->bytes <= r->conf.bytes_max || r->full)
        return;
    r->full = true;
    r->conf.full(r->conf.user);
}

/* From one to the other; who writes slower than the other reads is waited for. */
static void move(struct conn *c, struct bufferevent *from, struct bufferevent *to)
{
    struct evbuffer *in = bufferevent_get_input(from), *out = bufferevent_get_output(to);

    count(c->relay, evbuffer_get_length(in));
    if (c->relay->full) {
        conn_free(c);
        return;
    }
    (void)evbuffer_add_buffer(out, in);
    if (evbuffer_get_length(out) > HELD_MAX)
        (void)bufferevent_disable(from, EV_READ);
}

/* ---- the way out ---- */

static void host_on_event(struct bufferevent *b, short what, void *user);

static void host_on_read(struct bufferevent *b, void *user)
{
    struct conn *c = user;

    move(c, b, c->program);
}

static void host_on_written(struct bufferevent *b, void *user)
{
    struct conn *c = user;

    (void)b;
    if (c->state == CONN_FLOWING && c->tunnel)
        (void)bufferevent_enable(c->program, EV_READ);
}

/* The next address that can be tried. */
static void dial(struct conn *c)
{
    const struct relay_host *t = c->target;

    while (c->tried < t->n) {
        size_t i = c->tried++;

        if (c->host)
            bufferevent_free(c->host);
        c->host = bufferevent_socket_new(c->relay->conf.base, -1, BEV_OPT_CLOSE_ON_FREE);
        if (!c->host)
            break;
        bufferevent_setcb(c->host, host_on_read, host_on_written, host_on_event, c);
        set_silence(c->host, DIAL_S, DIAL_S);
        if (bufferevent_socket_connect(c->host, (const struct sockaddr *)&t->address[i],
                                       (int)t->address_n[i]) == 0)
            return;
    }
    answer(c, "502 Bad Gateway", "the host cannot be reached\n");
}

static void on_connected(struct conn *c)
{
    c->state = CONN_FLOWING;
    set_silence(c->host, SILENT_S, SILENT_S);
    set_silence(c->program, 0, SILENT_S);
    (void)bufferevent_enable(c->host, EV_READ | EV_WRITE);
    if (c->tunnel) {
        (void)evbuffer_add_printf(bufferevent_get_output(c->program),
                                  "HTTP/1.1 200 Connection established\r\n\r\n");
        (void)bufferevent_enable(c->program, EV_READ | EV_WRITE);
        return;
    }
    count(c->relay, c->request.n);
    (void)evbuffer_add(bufferevent_get_output(c->host), c->request.p, c->request.n);
    buf_done(&c->request);
    (void)bufferevent_enable(c->program, EV_WRITE);
}

static void host_on_event(struct bufferevent *b, short what, void *user)
{
    struct conn *c = user;

    (void)b;
    if (what & BEV_EVENT_CONNECTED) {
        on_connected(c);
    } else if (c->state == CONN_DIALLING) {
        dial(c);
    } else if (c->state == CONN_FLOWING) {
        linger(c); /* an end or an error: the program gets what is there */
    }
}

/* ---- the program ---- */

static const struct relay_host *find(const struct relay *r, const struct package_host *h)
{
    for (size_t i = 0; i < r->conf.hosts_n; i++)
        if (r->conf.hosts[i].host.port == h->port &&
            strcmp(r->conf.hosts[i].host.name, h->name) == 0)
            return &r->conf.hosts[i];
    return NULL;
}

static void refuse(struct conn *c, const struct package_host *h)
{
    struct relay *r = c->relay;
    char target[TARGET_MAX];

    (void)snprintf(target, sizeof target, "%s:%u", h->name, h->port);
    r->conf.refused(r->conf.user, target);
    answer(c, "403 Forbidden", "this host is not on the list of hosts that may be reached\n");
}

static void on_request(struct conn *c, const struct relay_request *q)
{
    c->target = find(c->relay, &q->host);
    if (!c->target) {
        refuse(c, &q->host);
        return;
    }
    c->tunnel = q->tunnel;
    if (!c->tunnel) {
        c->request = BUF_INIT(2 * RELAY_HEAD_MAX);
        relay_request_write(q, &c->request);
    }
    if (c->request.failed) {
        answer(c, "431 Request Header Fields Too Large", "the request is too long\n");
        return;
    }
    c->state = CONN_DIALLING;
    (void)bufferevent_disable(c->program, EV_READ);
    dial(c);
}

static void read_head(struct conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->program);
    size_t n = evbuffer_get_length(in);
    struct relay_request q;
    const char *p = (const char *)evbuffer_pullup(in, (ev_ssize_t)n);
    int r = p ? relay_request_parse(p, n, &q) : -1;

    if (r == 0)
        return;
    if (r < 0) {
        answer(c, "400 Bad Request", "want CONNECT host:port, or GET http://host/path\n");
        return;
    }
    on_request(c, &q);
    if (c->state == CONN_DIALLING)
        (void)evbuffer_drain(in, q.head_n);
}

static void program_on_read(struct bufferevent *b, void *user)
{
    struct conn *c = user;

    if (c->state == CONN_HEAD)
        read_head(c);
    else if (c->state == CONN_FLOWING && c->tunnel)
        move(c, b, c->host);
    else
        (void)evbuffer_drain(bufferevent_get_input(b), PART_MAX);
}

static void program_on_written(struct bufferevent *b, void *user)
{
    struct conn *c = user;

    if (c->state == CONN_LINGERING)
        (void)shutdown(bufferevent_getfd(b), SHUT_WR);
    else if (c->state == CONN_FLOWING)
        (void)bufferevent_enable(c->host, EV_READ);
}

/* The end of a tunnel's first half is the end of all of it: TLS has its own way to say goodbye. */
static void program_on_event(struct bufferevent *b, short what, void *user)
{
    (void)b, (void)what;
    conn_free(user);
}

/* ---- accepting ---- */

static void welcome(struct relay *r, int fd)
{
    struct conn *c = r->n < RELAY_CONNECTIONS_MAX && !r->full ? calloc(1, sizeof *c) : NULL;

    if (!c) {
        (void)close(fd);
        return;
    }
    c->relay = r;
    c->program = bufferevent_socket_new(r->conf.base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!c->program) {
        (void)close(fd);
        free(c);
        return;
    }
    LIST_INSERT_HEAD(&r->conns, c, link);
    r->n++;
    bufferevent_setcb(c->program, program_on_read, program_on_written, program_on_event, c);
    set_silence(c->program, HEAD_S, HEAD_S);
    bufferevent_setwatermark(c->program, EV_READ, 0, RELAY_HEAD_MAX);
    (void)bufferevent_enable(c->program, EV_READ | EV_WRITE);
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
    struct relay *r = user;

    (void)fd, (void)what;
    (void)event_add(r->listener, NULL);
}

static void on_accept(evutil_socket_t fd, short what, void *user)
{
    const struct timeval pause = {.tv_usec = PAUSE_MS * 1000};
    struct relay *r = user;

    (void)what;
    for (int i = 0; i < BATCH; i++) {
        int program = os_accept(fd);

        if (program >= 0) {
            welcome(r, program);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            (void)event_del(r->listener); /* it stays readable: the loop would spin */
            (void)event_add(r->again, &pause);
        }
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

/* ---- life ---- */

/* It came out of a sandbox: is it what was asked for? */
static bool is_listener(int fd)
{
    int family = 0, listening = 0;
    socklen_t n = sizeof family, k = sizeof listening;

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n) == 0 && family == AF_INET &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &k) == 0 && listening;
}

int relay_open(const struct relay_conf *conf, int listener, struct relay **ret, struct err *e)
{
    cleanup_close int fd = listener;
    struct relay *r;

    if (!is_listener(fd) || fd_nonblock(fd, true) < 0)
        return err_set(e, ERR_HOST, "what came for the relay is not a listener");
    r = calloc(1, sizeof *r);
    if (!r)
        return err_set(e, ERR_HOST, "no memory for a relay");
    r->conf = *conf;
    LIST_INIT(&r->conns);
    r->again = evtimer_new(conf->base, on_again, r);
    r->listener = event_new(conf->base, fd, EV_READ | EV_PERSIST, on_accept, r);
    if (!r->again || !r->listener || event_add(r->listener, NULL) < 0) {
        if (r->listener)
            event_free(take_ptr(&r->listener));
        relay_close(r);
        return err_set(e, ERR_HOST, "no memory for a relay");
    }
    (void)take_fd(&fd);
    *ret = r;
    return 0;
}

void relay_close(struct relay *r)
{
    struct conn *c;

    if (!r)
        return;
    while ((c = LIST_FIRST(&r->conns)))
        conn_free(c);
    if (r->listener) {
        (void)close(event_get_fd(r->listener));
        event_free(r->listener);
    }
    if (r->again)
        event_free(r->again);
    free(r);
}

uint64_t relay_bytes(const struct relay *r)
{
    return r->bytes;
}

void relay_host_resolve(struct relay_host *h)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    char port[8];
    int r;

    (void)snprintf(port, sizeof port, "%u", h->host.port);
    h->n = 0;
    r = getaddrinfo(h->host.name, port, &hints, &list);
    if (r != 0) {
        (void)snprintf(h->error, sizeof h->error, "%s", gai_strerror(r));
        return;
    }
    for (const struct addrinfo *a = list; a && h->n < RELAY_ADDRESSES_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof h->address[0])
            continue;
        memcpy(&h->address[h->n], a->ai_addr, a->ai_addrlen);
        h->address_n[h->n++] = a->ai_addrlen;
    }
    freeaddrinfo(list);
}
