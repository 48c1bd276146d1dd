/* SPDX-License-Identifier: MIT */
/*
 * One connection of a program, from its first byte.
 *
 *   port 3128   GREETING ─▶ SOCKS ─┐
 *                  └▶ HEAD ────────┤
 *   port 80        HEAD ───────────┼─▶ DIALLING ─▶ FLOWING ─▶ closed
 *   port 443       HELLO ──────────┤      │ ▲
 *   another one ───────────────────┘      ▼ │
 *                                    HEAD, HELLO   (behind CONNECT and SOCKS: the program speaks
 *                                                   only when it has been told that the host is
 * there) any ──refused──▶ LINGERING ─▶ closed
 *
 * Heads and hellos are looked at where they are, in the socket, and taken out when they are
 * complete.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "core/net_ports.h"
#include "egress/door.h"
#include "egress/hello.h"
#include "egress/socks.h"

enum {
    HEAD_US = 15000000,  /* what a program says first must be complete by then */
    LINGER_US = 2000000, /* one that was refused may read for so long */
    US_PER_MS = 1000,
    ALERT_DENIED = 49,
    ALERT_ERROR = 80,
};

/* ---- life ---- */

void conn_close(struct conn *c)
{
    struct door *d = c->door;

    if (c->state == CONN_DEAD)
        return;
    c->state = CONN_DEAD;
    fd_close_all(&c->program.fd, 1);
    fd_close_all(&c->host.fd, 1);
    LIST_REMOVE(c, link);
    LIST_INSERT_HEAD(&d->dead, c, link);
    d->conns_n--;
}

static void arm(struct conn *c)
{
    bool flowing = c->state == CONN_FLOWING;
    bool listens = c->state != CONN_DIALLING && !flowing;

    if (c->state == CONN_DEAD)
        return;
    door_arm(c->door, &c->program,
             (listens || (flowing && !c->awaits_upgrade && flow_reads(&c->up)) ? EPOLLIN : 0) |
                 (flow_writes(&c->down) ? EPOLLOUT : 0));
    if (c->host.fd >= 0)
        door_arm(c->door, &c->host,
                 (flowing && flow_reads(&c->down) ? EPOLLIN : 0) |
                     (flow_writes(&c->up) ? EPOLLOUT : 0));
}

static void patience(struct conn *c, uint64_t us)
{
    c->until_us = clock_us() + us;
}

/* ---- refusing ---- */

static void say(struct conn *c, const void *p, size_t n)
{
    (void)buf_put(&c->down.said, p, n);
}

static void say_http(struct conn *c, enum egress_verdict v)
{
    bool host_is_down = v == EGRESS_UNREACHABLE || v == EGRESS_UNRESOLVED;
    char reach[512], body[1200];
    int n;

    egress_words(&c->door->policy, reach, sizeof reach);
    n = snprintf(body, sizeof body,
                 "{\"error\":\"network_denied\",\"host\":\"%s\",\"port\":%u,\"reason\":\"%s\","
                 "\"hint\":\"%s%s\"}\n",
                 c->name, c->port, egress_verdict_name(v),
                 host_is_down ? "the host cannot be reached from outside either"
                              : "the sandbox may reach ",
                 host_is_down ? "" : reach);
    (void)buf_printf(&c->down.said,
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\nX-Sandbox-Denied: %s\r\n"
                     "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
                     host_is_down              ? "502 Bad Gateway"
                     : v == EGRESS_BAD_REQUEST ? "400 Bad Request"
                     : v == EGRESS_BUSY        ? "503 Service Unavailable"
                                               : "403 Forbidden",
                     egress_verdict_name(v), n, body);
}

static void say_socks(struct conn *c, enum egress_verdict v)
{
    uint8_t reply[SOCKS_REPLY];

    socks_reply(v == EGRESS_UNREACHABLE || v == EGRESS_UNRESOLVED ? SOCKS_UNREACHABLE
                : v == EGRESS_BAD_REQUEST || v == EGRESS_BUSY     ? SOCKS_FAILED
                                                                  : SOCKS_REFUSED,
                reply);
    say(c, reply, sizeof reply);
}

static void say_tls(struct conn *c, enum egress_verdict v)
{
    bool ours = v == EGRESS_UNREACHABLE || v == EGRESS_UNRESOLVED || v == EGRESS_BUSY;
    const uint8_t alert[] = {21, 3, 3, 0, 2, 2, ours ? ALERT_ERROR : ALERT_DENIED};

    say(c, alert, sizeof alert);
}

/* Whatever was said to the program is written out; what it still says is not read by anybody. */
static void linger(struct conn *c)
{
    c->state = CONN_LINGERING;
    fd_close_all(&c->host.fd, 1);
    c->up.ended = true;
    c->up.said.n = 0;
    c->down.from = -1;
    c->down.to = c->program.fd;
    c->down.ended = c->down.half = true;
    patience(c, LINGER_US);
    if (flow_move(&c->down) < 0 || c->speech == SPEECH_NOTHING)
        conn_close(c);
}

static void refuse(struct conn *c, enum egress_verdict v)
{
    (void)account_add(&c->door->account, c->name, c->port, v);
    if (c->speech == SPEECH_HTTP)
        say_http(c, v);
    else if (c->speech == SPEECH_SOCKS)
        say_socks(c, v);
    else if (c->speech == SPEECH_TLS)
        say_tls(c, v);
    linger(c);
}

/* ---- what the program says first ---- */

/* What is there, without taking it; 0: nothing new. The next event comes when there is more. */
static size_t look(struct conn *c)
{
    struct door *d = c->door;
    ssize_t n = recv(c->program.fd, d->look, LOOK_MAX, MSG_PEEK);
    int more = n > 0 ? (int)n + 1 : 1;

    /* Woken without more: it has ended. */
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || (n > 0 && (size_t)n == c->looked))
        conn_close(c);
    if (n <= 0 || c->state == CONN_DEAD)
        return 0;
    c->looked = (size_t)n;
    (void)setsockopt(c->program.fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more);
    return (size_t)n;
}

static void take(struct conn *c, size_t n)
{
    int one = 1;

    (void)setsockopt(c->program.fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    (void)!recv(c->program.fd, c->door->look, n, 0);
    c->looked = 0;
}

static void dial(struct conn *c)
{
    struct egress_dial what = {.verb = EGRESS_DIAL, .id = c->id, .port = c->port};

    memcpy(what.host, c->name, sizeof what.host);
    c->state = CONN_DIALLING;
    if (fd_send(c->door->dialler.fd, &what, sizeof what, NULL, 0) < 0)
        refuse(c, EGRESS_BUSY);
}

static void flow(struct conn *c)
{
    c->row = account_add(&c->door->account, c->name, c->port, EGRESS_ALLOWED);
    if (c->row && c->plain)
        c->row->requests++;
    account_bytes(&c->door->account, c->row, c->up.said.n, 0); /* a head that we wrote */
    c->state = CONN_FLOWING;
    c->up.from = c->down.to = c->program.fd;
    c->up.to = c->down.from = c->host.fd;
    c->down.half = true;
    c->up.half = !c->plain;
    if (c->awaits_upgrade)
        c->up.until = FLOW_TO_END;
    patience(c, (uint64_t)c->door->policy.idle_ms * US_PER_MS);
    conn_event(c);
}

/* The program is to be told that the host is there; only then does it speak. */
static void connected_for(struct conn *c)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    uint8_t reply[SOCKS_REPLY];

    socks_reply(SOCKS_DONE, reply);
    if (c->socks)
        say(c, reply, sizeof reply);
    else
        say(c, established, sizeof established - 1);
    c->tunnel = c->socks = false;
    c->down.to = c->program.fd;
    c->down.from = -1;
    if (flow_move(&c->down) < 0) {
        conn_close(c);
        return;
    }
    c->speech = SPEECH_NOTHING;
    if (c->port != EGRESS_TLS && c->port != EGRESS_HTTP) {
        flow(c);
        return;
    }
    c->speech = c->port == EGRESS_TLS ? SPEECH_TLS : SPEECH_HTTP;
    c->state = c->port == EGRESS_TLS ? CONN_HELLO : CONN_HEAD;
    patience(c, HEAD_US);
}

void conn_dialled(struct conn *c, enum egress_verdict v, int fd)
{
    c->host.fd = fd;
    if (c->state != CONN_DIALLING || v != EGRESS_ALLOWED) {
        if (c->state == CONN_DIALLING)
            refuse(c, v);
        arm(c);
        return;
    }
    if (c->tunnel || c->socks)
        connected_for(c);
    else
        flow(c);
    arm(c);
}

/* Name and port are known: may it be? Bytes on other ports are not looked at. */
static void decide(struct conn *c)
{
    const struct egress_policy *p = &c->door->policy;
    bool any;
    enum egress_verdict v = c->port == EGRESS_HTTP || c->plain
                                ? egress_look_http(p, c->name, c->port)
                                : egress_look(p, c->name, c->port, &any);

    c->named = true;
    if (v != EGRESS_ALLOWED)
        refuse(c, v);
    else
        dial(c);
}

/* ---- TLS ---- */

static enum egress_verdict judge_hello(const struct conn *c, enum hello h, const char *name)
{
    char address[EGRESS_NAME_MAX + 1];

    if (h == HELLO_ECH)
        return EGRESS_ECH;
    if (h == HELLO_NAME)
        return strcmp(name, c->name) == 0 ? EGRESS_ALLOWED : EGRESS_SNI_MISMATCH;
    /* Nobody names an address. */
    return h == HELLO_NO_NAME &&
                   egress_host_read(c->name, strlen(c->name), address) == EGRESS_HOST_ADDRESS
               ? EGRESS_ALLOWED
               : EGRESS_NO_SNI;
}

static void on_hello(struct conn *c)
{
    char name[EGRESS_NAME_MAX + 1];
    size_t n = look(c);
    enum egress_verdict v;
    enum hello h;
    int one = 1;

    if (n == 0)
        return;
    h = hello_read((const uint8_t *)c->door->look, n, name);
    if (h == HELLO_MORE && n < HELLO_MAX)
        return;
    c->looked = 0;
    (void)setsockopt(c->program.fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    v = judge_hello(c, h, name);
    if (v != EGRESS_ALLOWED)
        refuse(c, v);
    else if (c->host.fd >= 0)
        flow(c);
    else
        decide(c);
}

/* ---- HTTP ---- */

static void send_request(struct conn *c, const struct request *r)
{
    const struct h1_head *h = &r->head;
    bool any;
    bool narrow = egress_look(&c->door->policy, c->name, c->port, &any) != EGRESS_ALLOWED;

    c->plain = true;
    request_write(r, c->name, c->port, narrow && r->clean, &c->up.said);
    c->awaits_upgrade = r->upgrades;
    c->up.until = h->chunked ? FLOW_CHUNKS : FLOW_LENGTH;
    c->up.left = h->length > 0 ? (uint64_t)h->length : 0;
    c->up.ended = !h1_has_body(h) && !r->upgrades;
    if (c->up.said.failed)
        refuse(c, EGRESS_BAD_REQUEST);
    else if (c->host.fd >= 0)
        flow(c);
    else
        decide(c);
}

/* Where the connection has a name already, a request has to be for that. */
static enum egress_verdict judge_request(struct conn *c, const struct request *r)
{
    uint16_t port = r->port ? r->port : EGRESS_HTTP;

    if (c->named && (strcmp(r->host, c->name) != 0 || port != c->port))
        return EGRESS_HOST_MISMATCH;
    if (!c->named && !r->absolute) /* the proxy is no host */
        return EGRESS_BAD_REQUEST;
    memcpy(c->name, r->host, sizeof c->name);
    c->port = port;
    c->named = true;
    return egress_look_request(&c->door->policy, c->name, c->port, r->head.method,
                               r->clean ? r->path : "");
}

static void on_request(struct conn *c, size_t n)
{
    struct request *r = &c->door->request;
    enum egress_verdict v = request_read(c->door->look, n, r);

    if (v != EGRESS_ALLOWED) {
        if (!c->named) {
            memcpy(c->name, r->host, sizeof c->name);
            c->port = r->port;
        }
        refuse(c, v);
        return;
    }
    if (r->tunnel && !c->named) {
        memcpy(c->name, r->host, sizeof c->name);
        c->port = r->port;
        c->tunnel = true;
        decide(c);
        return;
    }
    v = r->tunnel ? EGRESS_BAD_REQUEST : judge_request(c, r);
    if (v != EGRESS_ALLOWED)
        refuse(c, v);
    else
        send_request(c, r);
}

static void on_head(struct conn *c)
{
    size_t n = look(c), scanned = 0;
    ssize_t end = n > 0 ? h1_head_end(c->door->look, n, &scanned) : 0;

    if (n == 0 || (end == 0 && n < LOOK_MAX && !memchr(c->door->look, '\0', n)))
        return;
    if (end <= 0) {
        refuse(c, EGRESS_BAD_REQUEST);
        return;
    }
    take(c, (size_t)end); /* again, into the same place */
    on_request(c, (size_t)end);
}

/* ---- SOCKS ---- */

static void on_greeting(struct conn *c)
{
    static const uint8_t chosen[] = {SOCKS_VERSION, 0};
    size_t n = look(c);
    int used;

    if (n == 0)
        return;
    if ((uint8_t)c->door->look[0] != SOCKS_VERSION) {
        c->speech = SPEECH_HTTP;
        c->state = CONN_HEAD;
        c->looked = 0;
        on_head(c);
        return;
    }
    used = socks_greeting((const uint8_t *)c->door->look, n);
    if (used < 0)
        conn_close(c);
    if (used <= 0)
        return;
    take(c, (size_t)used);
    say(c, chosen, sizeof chosen);
    c->down.to = c->program.fd;
    c->speech = SPEECH_SOCKS;
    c->state = CONN_SOCKS;
    if (flow_move(&c->down) < 0)
        conn_close(c);
}

static void on_socks(struct conn *c)
{
    size_t n = look(c);
    struct socks_request r;
    const char *name;
    int used = n > 0 ? socks_request((const uint8_t *)c->door->look, n, &r) : 0;

    if (n == 0 || used == 0)
        return;
    if (used < 0 || !r.connect) {
        refuse(c, EGRESS_BAD_REQUEST);
        return;
    }
    take(c, (size_t)used);
    name = r.v4 ? names_of(&c->door->names, r.v4) : NULL; /* it looked the name up before */
    (void)snprintf(c->name, sizeof c->name, "%s", name ? name : r.host);
    c->port = r.port;
    c->socks = true;
    if (r.kind == EGRESS_HOST_BAD || r.kind == EGRESS_HOST_ODD || r.port == 0)
        refuse(c, r.kind == EGRESS_HOST_ODD ? EGRESS_ADDRESS : EGRESS_BAD_REQUEST);
    else
        decide(c);
}

/* ---- both ways ---- */

static void on_upgrade(struct conn *c)
{
    static const char agreed[] = "HTTP/1.1 101";
    char head[sizeof agreed];
    ssize_t n = recv(c->host.fd, head, sizeof agreed - 1, MSG_PEEK);

    if (n < (ssize_t)sizeof agreed - 1 && n > 0)
        return;
    c->awaits_upgrade = false;
    if (n <= 0 || memcmp(head, agreed, sizeof agreed - 1) != 0)
        c->up.ended = true;
}

static void on_flow(struct conn *c)
{
    struct door *d = c->door;
    int64_t up = 0, down;
    bool waits = c->awaits_upgrade;

    if (waits && !flow_writes(&c->up))
        on_upgrade(c);
    if (!c->awaits_upgrade || flow_writes(&c->up)) {
        int from = c->up.from;

        c->up.from = c->awaits_upgrade ? -1 : from;
        up = flow_move(&c->up);
        c->up.from = from;
    }
    down = flow_move(&c->down);
    account_bytes(&d->account, c->row, up > 0 ? (uint64_t)up : 0, down > 0 ? (uint64_t)down : 0);
    if (up != 0 || down != 0)
        patience(c, (uint64_t)d->policy.idle_ms * US_PER_MS);
    if (up < 0 || down < 0 || (flow_is_over(&c->down) && (c->plain || flow_is_over(&c->up))))
        conn_close(c);
}

/* What it still says is not wanted; its end is the end. */
static void on_linger(struct conn *c)
{
    ssize_t n = recv(c->program.fd, c->door->look, LOOK_MAX, 0);

    if (flow_move(&c->down) < 0 || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        conn_close(c);
}

void conn_event(struct conn *c)
{
    switch (c->state) {
    case CONN_GREETING:
        on_greeting(c);
        break;
    case CONN_SOCKS:
        on_socks(c);
        break;
    case CONN_HEAD:
        on_head(c);
        break;
    case CONN_HELLO:
        on_hello(c);
        break;
    case CONN_FLOWING:
        on_flow(c);
        break;
    case CONN_LINGERING:
        on_linger(c);
        break;
    case CONN_DIALLING:
    case CONN_DEAD:
        break;
    }
    arm(c);
}

void conn_expire(struct conn *c)
{
    if (c->state == CONN_HEAD && c->speech == SPEECH_HTTP)
        refuse(c, EGRESS_BAD_REQUEST);
    else
        conn_close(c);
    arm(c);
}

void conn_judge(struct conn *c)
{
    bool any;

    if (!c->named && c->state < CONN_DIALLING)
        return;
    if (c->state == CONN_LINGERING || c->state == CONN_DEAD)
        return;
    if ((c->plain || c->port == EGRESS_HTTP
             ? egress_look_http(&c->door->policy, c->name, c->port)
             : egress_look(&c->door->policy, c->name, c->port, &any)) != EGRESS_ALLOWED) {
        (void)account_add(&c->door->account, c->name, c->port, EGRESS_NOT_ALLOWED);
        conn_close(c);
    }
}

/* ---- the beginning ---- */

/* Which name was meant: the program connected to an address that only that name has. */
static bool name_it(struct conn *c, uint16_t port)
{
    struct sockaddr_in at;
    socklen_t n = sizeof at;
    const char *name;

    if (getsockname(c->program.fd, (struct sockaddr *)&at, &n) < 0 || at.sin_family != AF_INET)
        return false;
    name = names_of(&c->door->names, at.sin_addr.s_addr);
    c->port = port;
    if (!name)
        return false;
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    c->named = true;
    return true;
}

static void begin(struct conn *c, uint16_t port)
{
    if (port == NET_PROXY_PORT)
        return;
    if (!name_it(c, port)) {
        conn_close(c); /* an address that no name has */
        return;
    }
    if (port == EGRESS_HTTP) {
        c->state = CONN_HEAD;
        c->speech = SPEECH_HTTP;
    } else if (port == EGRESS_TLS) {
        c->state = CONN_HELLO;
        c->speech = SPEECH_TLS;
    } else {
        decide(c);
    }
}

void conn_open(struct door *d, int fd, uint16_t port)
{
    struct conn *c = calloc(1, sizeof *c);

    if (!c) {
        (void)close(fd);
        return;
    }
    c->door = d;
    c->id = ++d->next_id;
    c->program = (struct source){.kind = SOURCE_CONN, .fd = fd, .conn = c};
    c->host = (struct source){.kind = SOURCE_CONN, .fd = -1, .conn = c};
    flow_init(&c->up);
    flow_init(&c->down);
    LIST_INSERT_HEAD(&d->conns, c, link);
    d->conns_n++;
    patience(c, HEAD_US);
    begin(c, port);
    arm(c);
}
