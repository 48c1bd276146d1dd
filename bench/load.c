/* SPDX-License-Identifier: MIT */
/*
 * bench-load -p port [-t token] [-m method] [-u path] [-b body-file] [-n requests] [-c connections]
 *            [-i interval-us] [-w warm-up] [-e expected-text]
 *
 * A closed-loop HTTP client on loopback: one thread, one epoll, kept
 * connections, the same request over and over. With an interval, requests are
 * due at fixed times, and latency counts from the due time if the answer before
 * came too late for it: a stall is not hidden by the client that waits for it.
 * That the client's own clock wakes it late is not the server's. Prints one line
 * of JSON.
 *
 * -k N opens N connections, lets each send the request once, prints "ready" and
 * holds them until standard input ends: that is how memory per idle connection
 * is measured.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"

enum {
    CONNECTIONS_MAX = 20000,
    REQUESTS_MAX = 10000000,
    BODY_MAX = 4 << 20,
    REPLY_MAX = 1 << 20, /* of one answer */
    EVENTS = 256,
};

struct setup {
    uint16_t port;
    const char *token, *method, *path, *body_file, *expected;
    size_t requests, connections, warm_up, hold;
    uint64_t interval_ns;
    char *request; /* owned: head and body */
    size_t request_n;
};

struct conn {
    int fd;
    size_t sent;           /* of the request */
    size_t got;            /* of the answer */
    size_t want;           /* whole answer; 0: head not complete */
    uint64_t began, ended; /* ended: the answer before */
    bool busy;
    char *reply; /* owned, REPLY_MAX bytes */
};

struct load {
    const struct setup *s;
    struct conn *conns; /* owned */
    size_t conns_n;
    int epoll;
    struct sample *sample;
    size_t started, finished, goal;
};

_Noreturn static void die(const char *what)
{
    (void)fprintf(stderr, "bench-load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- the request ---- */

static char *read_file(const char *path, size_t *ret_n)
{
    FILE *f = fopen(path, "re");
    char *p = malloc(BODY_MAX);

    if (!f || !p)
        die(path);
    *ret_n = fread(p, 1, BODY_MAX, f);
    (void)fclose(f);
    return p;
}

static void build_request(struct setup *s)
{
    size_t body_n = 0, max = 4096;
    char *body = s->body_file ? read_file(s->body_file, &body_n) : NULL;
    int head;

    s->request = malloc(max + body_n);
    if (!s->request)
        die("memory");
    head = snprintf(s->request, max,
                    "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
                    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                    s->method, s->path, s->token, body_n);
    if (head < 0 || (size_t)head >= max)
        die("request head");
    if (body)
        memcpy(s->request + head, body, body_n);
    s->request_n = (size_t)head + body_n;
    free(body);
}

/* ---- one connection ---- */

static void conn_open(struct load *l, struct conn *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(l->s->port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    int one = 1;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&at, sizeof at) < 0)
        die("connect");
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0 ||
        epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &event) < 0)
        die("epoll");
}

static void conn_flush(struct load *l, struct conn *c)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    ssize_t n;

    while (c->sent < l->s->request_n) {
        n = send(c->fd, l->s->request + c->sent, l->s->request_n - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            die("send");
        c->sent += (size_t)n;
    }
    if (c->sent < l->s->request_n)
        event.events |= EPOLLOUT;
    (void)epoll_ctl(l->epoll, EPOLL_CTL_MOD, c->fd, &event);
}

static void conn_begin(struct load *l, struct conn *c, uint64_t due)
{
    c->sent = c->got = c->want = 0;
    c->began = due;
    c->busy = true;
    l->started++;
    conn_flush(l, c);
}

/* The answer's full length once its head is there; only Content-Length is understood. */
static size_t reply_length(const struct conn *c)
{
    const char *end = memmem(c->reply, c->got, "\r\n\r\n", 4), *field;

    if (!end)
        return 0;
    field = strcasestr(c->reply, "\r\ncontent-length:");
    if (!field || field > end) {
        (void)fprintf(stderr, "bench-load: an answer without Content-Length\n");
        exit(1);
    }
    return (size_t)(end - c->reply) + 4 + strtoul(field + 17, NULL, 10);
}

static void conn_finish(struct load *l, struct conn *c)
{
    bool good =
        strncmp(c->reply, "HTTP/1.1 200", 12) == 0 &&
        (!l->s->expected || memmem(c->reply, c->got, l->s->expected, strlen(l->s->expected)));

    c->busy = false;
    c->ended = now_ns();
    l->finished++;
    if (good) {
        sample_add(l->sample, c->ended - c->began);
    } else {
        if (l->sample->failed++ == 0)
            (void)fprintf(stderr, "bench-load: %.400s\n", c->reply);
    }
}

static void conn_read(struct load *l, struct conn *c)
{
    ssize_t n = recv(c->fd, c->reply + c->got, REPLY_MAX - 1 - c->got, 0);

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        (void)fprintf(stderr, "bench-load: connection lost\n");
        exit(1);
    }
    c->got += (size_t)n;
    c->reply[c->got] = '\0';
    if (c->want == 0)
        c->want = reply_length(c);
    if (c->want > 0 && c->got >= c->want)
        conn_finish(l, c);
}

/* ---- all of them ---- */

static void load_open(struct load *l, const struct setup *s, size_t conns)
{
    *l = (struct load){.s = s, .conns_n = conns, .conns = calloc(conns, sizeof *l->conns)};
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!l->conns || l->epoll < 0)
        die("start");
    for (size_t i = 0; i < conns; i++) {
        l->conns[i].reply = malloc(REPLY_MAX);
        if (!l->conns[i].reply)
            die("memory");
        conn_open(l, &l->conns[i]);
    }
}

static void load_close(struct load *l)
{
    for (size_t i = 0; i < l->conns_n; i++) {
        (void)close(l->conns[i].fd);
        free(l->conns[i].reply);
    }
    (void)close(l->epoll);
    free(l->conns);
}

/* Starts what is due on idle connections; returns how long to wait for events, UINT64_MAX: any
 * time. */
static uint64_t load_start_due(struct load *l, uint64_t began)
{
    for (size_t i = 0; i < l->conns_n && l->started < l->goal; i++) {
        uint64_t now = now_ns(), due = began + l->started * l->s->interval_ns;

        if (l->conns[i].busy)
            continue;
        if (l->s->interval_ns == 0)
            due = now;
        if (due > now)
            return due - now;
        conn_begin(l, &l->conns[i], l->conns[i].ended > due ? due : now);
    }
    return UINT64_MAX;
}

static void load_run(struct load *l, size_t goal, struct sample *sample)
{
    struct epoll_event events[EVENTS];

    l->sample = sample;
    l->started = l->finished = 0;
    l->goal = goal;
    sample->began = now_ns();
    while (l->finished < goal) {
        uint64_t ns = load_start_due(l, sample->began);
        struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
        int n = epoll_pwait2(l->epoll, events, EVENTS, ns == UINT64_MAX ? NULL : &t, NULL);

        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;

            if (events[i].events & EPOLLOUT)
                conn_flush(l, c);
            if (events[i].events & ~(uint32_t)EPOLLOUT)
                conn_read(l, c);
        }
    }
    sample->ended = now_ns();
}

/* Opens connections that have been used once and then only wait. */
static int hold(const struct setup *s)
{
    struct load l;
    struct sample sample;
    char byte;

    sample_init(&sample, s->hold);
    load_open(&l, s, s->hold);
    load_run(&l, s->hold, &sample);
    (void)printf("ready %zu\n", sample.n);
    (void)fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    load_close(&l);
    sample_done(&sample);
    return 0;
}

static int measure(const struct setup *s)
{
    struct load l;
    struct sample warm, measured;
    int failed;

    sample_init(&warm, s->warm_up);
    sample_init(&measured, s->requests);
    load_open(&l, s, s->connections);
    load_run(&l, s->warm_up, &warm);
    load_run(&l, s->requests, &measured);
    load_close(&l);
    sample_print(&measured, -1);
    failed = measured.failed > 0;
    sample_done(&warm);
    sample_done(&measured);
    return failed;
}

static size_t number(const char *text, size_t max)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);

    if (*end != '\0' || v > max) {
        (void)fprintf(stderr, "bench-load: bad number '%s'\n", text);
        exit(2);
    }
    return v;
}

static int parse(struct setup *s, int argc, char **argv)
{
    for (int opt; (opt = getopt(argc, argv, "p:t:m:u:b:n:c:i:w:e:k:")) != -1;) {
        switch (opt) {
        case 'p':
            s->port = (uint16_t)number(optarg, UINT16_MAX);
            break;
        case 't':
            s->token = optarg;
            break;
        case 'm':
            s->method = optarg;
            break;
        case 'u':
            s->path = optarg;
            break;
        case 'b':
            s->body_file = optarg;
            break;
        case 'e':
            s->expected = optarg;
            break;
        case 'n':
            s->requests = number(optarg, REQUESTS_MAX);
            break;
        case 'c':
            s->connections = number(optarg, CONNECTIONS_MAX);
            break;
        case 'i':
            s->interval_ns = (uint64_t)number(optarg, 10000000) * 1000;
            break;
        case 'w':
            s->warm_up = number(optarg, REQUESTS_MAX);
            break;
        case 'k':
            s->hold = number(optarg, CONNECTIONS_MAX);
            break;
        default:
            return -1;
        }
    }
    return s->port == 0 || s->connections == 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct setup s = {.token = "",
                      .method = "POST",
                      .path = "/execute",
                      .requests = 100,
                      .connections = 1,
                      .warm_up = 5};
    int status;

    if (parse(&s, argc, argv) < 0)
        return 2;
    build_request(&s);
    status = s.hold ? hold(&s) : measure(&s);
    free(s.request);
    return status;
}
