/* SPDX-License-Identifier: MIT */
/* The relay's parser, and the relay between two ends that the test holds. */
#include <arpa/inet.h>
#include <cmocka.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "net/relay.h"
#include "net/relay_head.h"

/* ---- the parser ---- */

static int parse(const char *text, struct relay_request *q)
{
    return relay_request_parse(text, strlen(text), q);
}

static void tunnels(void **state)
{
    struct relay_request q;

    (void)state;
    assert_int_equal(parse("CONNECT Pypi.org:443 HTTP/1.1\r\nHost: x\r\n\r\nrest", &q), 1);
    assert_true(q.tunnel);
    assert_string_equal(q.host.name, "pypi.org");
    assert_int_equal(q.host.port, 443);
    assert_int_equal(q.head_n, strlen("CONNECT Pypi.org:443 HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_int_equal(parse("CONNECT [::1]:1 HTTP/1.0\r\n\r\n", &q), 1);
    assert_string_equal(q.host.name, "::1");
}

static void plain_requests_are_rewritten(void **state)
{
    struct buf out = BUF_INIT(4096);
    struct relay_request q;

    (void)state;
    assert_int_equal(
        parse("GET http://h:81/a?b=c HTTP/1.1\r\nHost: other\r\nAccept: */*\r\n"
              "Proxy-Authorization: x\r\nCONNECTION: keep-alive\r\nContent-Length: 5\r\n"
              "Authorization: Basic eA==\r\nno colon\r\nBad name: x\r\n\r\nhello",
              &q),
        1);
    assert_false(q.tunnel);
    relay_request_write(&q, &out);
    assert_string_equal(out.p, "GET /a?b=c HTTP/1.1\r\nHost: h:81\r\nConnection: close\r\n"
                               "Accept: */*\r\nAuthorization: Basic eA==\r\n\r\n");
    buf_clear(&out);
    assert_int_equal(parse("HEAD HTTP://h HTTP/1.0\r\n\r\n", &q), 1);
    relay_request_write(&q, &out);
    assert_string_equal(out.p, "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    buf_done(&out);
}

static void other_requests_are_refused(void **state)
{
    static const char *const bad[] = {
        "POST http://h/ HTTP/1.1\r\n\r\n",
        "PUT http://h/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET https://h/ HTTP/1.1\r\n\r\n",
        "GET ftp://h/ HTTP/1.1\r\n\r\n",
        "GET http://u@h/ HTTP/1.1\r\n\r\n",
        "GET http:///x HTTP/1.1\r\n\r\n",
        "CONNECT h HTTP/1.1\r\n\r\n",
        "CONNECT h:0 HTTP/1.1\r\n\r\n",
        "CONNECT h:443x HTTP/1.1\r\n\r\n",
        "CONNECT http://h:1 HTTP/1.1\r\n\r\n",
        "CONNECT u@h:443 HTTP/1.1\r\n\r\n",
        "CONNECT h:443 HTTP/2\r\n\r\n",
        "CONNECT h:443\r\n\r\n",
        "CONNECT  h:443 HTTP/1.1\r\n\r\n",
        "connect h:443 HTTP/1.1\r\n\r\n",
        "\r\n\r\n",
        "\x16\x03\x01\r\n\r\n",
        "GET http://h/\x01 HTTP/1.1\r\n\r\n",
        "GET http://h/ a HTTP/1.1\r\n\r\n",
        "CONNECT h:443 HTTP/1.1\rX\r\n\r\n",
    };
    struct relay_request q;
    char large[RELAY_HEAD_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (parse(bad[i], &q) != -1)
            fail_msg("not refused: %s", bad[i]);
    assert_int_equal(parse("", &q), 0);
    assert_int_equal(parse("CONNECT h:443 HTTP/1.1\r\nA: b\r\n", &q), 0);
    assert_int_equal(relay_request_parse("GET\0", 4, &q), -1);
    memset(large, 'x', sizeof large);
    assert_int_equal(relay_request_parse(large, sizeof large - 1, &q), 0);
    assert_int_equal(relay_request_parse(large, sizeof large, &q), -1);
}

/* ---- the relay ---- */

struct world {
    struct event_base *base;
    struct relay *relay;
    struct relay_host host;
    int listener, target; /* the relay's way in, and the host behind it */
    uint16_t port;
    unsigned refused, full;
    char last[300];
};

static void on_refused(void *user, const char *target)
{
    struct world *w = user;

    w->refused++;
    (void)snprintf(w->last, sizeof w->last, "%s", target);
}

static void on_full(void *user)
{
    struct world *w = user;

    w->full++;
}

static int listen_here(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void world_open(struct world *w, uint64_t bytes_max)
{
    uint16_t port;
    struct relay_conf conf = {.hosts = &w->host,
                              .hosts_n = 1,
                              .bytes_max = bytes_max,
                              .refused = on_refused,
                              .full = on_full};
    struct err e;

    *w = (struct world){.base = event_base_new()};
    conf.base = w->base;
    conf.user = w;
    w->target = listen_here(&port);
    (void)snprintf(w->host.host.name, sizeof w->host.host.name, "127.0.0.1");
    w->host.host.port = port;
    relay_host_resolve(&w->host);
    assert_int_equal(w->host.n, 1);
    w->listener = listen_here(&w->port);
    assert_int_equal(relay_open(&conf, w->listener, &w->relay, &e), 0);
}

static void world_close(struct world *w)
{
    relay_close(w->relay);
    (void)close(w->target);
    event_base_free(w->base);
}

static int dial(const struct world *w)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(w->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

/* Lets the relay work until so many bytes have come, or the end. */
static size_t hear(struct world *w, int fd, char *out, size_t want)
{
    uint64_t end = clock_us() + 20 * 1000000ull;
    size_t n = 0;

    assert_int_equal(fd_nonblock(fd, true), 0);
    while (n < want && clock_us() < end) {
        ssize_t got = read(fd, out + n, want - n);

        if (got == 0)
            break;
        n += got > 0 ? (size_t)got : 0;
        if (got < 0)
            (void)event_base_loop(w->base, EVLOOP_NONBLOCK);
    }
    out[n] = '\0';
    assert_int_equal(fd_nonblock(fd, false), 0);
    return n;
}

static int answer_call(struct world *w)
{
    int fd = -1;

    assert_int_equal(fd_nonblock(w->target, true), 0);
    for (uint64_t end = clock_us() + 20 * 1000000ull; fd < 0 && clock_us() < end;) {
        (void)event_base_loop(w->base, EVLOOP_NONBLOCK);
        fd = accept4(w->target, NULL, NULL, SOCK_CLOEXEC);
    }
    assert_true(fd >= 0);
    return fd;
}

static void a_tunnel_carries_bytes_both_ways(void **state)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    char line[128], bytes[256];
    struct world w;
    int program, host;

    (void)state;
    world_open(&w, 1 << 20);
    program = dial(&w);
    (void)snprintf(line, sizeof line, "CONNECT 127.0.0.1:%u HTTP/1.1\r\n\r\nearly",
                   w.host.host.port);
    say(program, line);
    host = answer_call(&w);
    assert_int_equal(hear(&w, program, bytes, sizeof established - 1), sizeof established - 1);
    assert_string_equal(bytes, established);
    say(program, " late");
    assert_int_equal(hear(&w, host, bytes, 10), 10);
    assert_string_equal(bytes, "early late");
    say(host, "answer");
    (void)close(host);
    assert_int_equal(hear(&w, program, bytes, 100), 6);
    assert_string_equal(bytes, "answer");
    assert_int_equal(relay_bytes(w.relay), 16);
    (void)close(program);
    world_close(&w);
}

static void one_plain_request_and_no_more(void **state)
{
    char line[256], bytes[512];
    struct world w;
    int program, host;

    (void)state;
    world_open(&w, 1 << 20);
    program = dial(&w);
    (void)snprintf(line, sizeof line,
                   "GET http://127.0.0.1:%u/x HTTP/1.1\r\n\r\nGET /second HTTP/1.1\r\n\r\n",
                   w.host.host.port);
    say(program, line);
    host = answer_call(&w);
    (void)snprintf(line, sizeof line,
                   "GET /x HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n",
                   w.host.host.port);
    assert_int_equal(hear(&w, host, bytes, strlen(line)), strlen(line));
    assert_string_equal(bytes, line);
    say(host, "HTTP/1.1 200 OK\r\n\r\nhi");
    (void)shutdown(host, SHUT_WR);
    assert_int_equal(hear(&w, program, bytes, 100), 21);
    assert_int_equal(hear(&w, host, bytes, 1), 0); /* the second one never came */
    (void)close(host);
    (void)close(program);
    world_close(&w);
}

static void other_hosts_are_refused_and_told_of(void **state)
{
    static const char *const asked[] = {"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n",
                                        "GET http://localhost/ HTTP/1.1\r\n\r\n"};
    static const char *const told[] = {"127.0.0.1:1", "localhost:80"};
    char bytes[512];
    struct world w;

    (void)state;
    world_open(&w, 1 << 20);
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        int program = dial(&w);

        say(program, asked[i]);
        assert_true(hear(&w, program, bytes, sizeof bytes - 1) > 0);
        assert_int_equal(strncmp(bytes, "HTTP/1.1 403 ", 13), 0);
        assert_int_equal(w.refused, i + 1);
        assert_string_equal(w.last, told[i]);
        (void)close(program);
    }
    world_close(&w);
}

static void a_host_that_is_not_there(void **state)
{
    char line[128], bytes[512];
    struct world w;
    int program;

    (void)state;
    world_open(&w, 1 << 20);
    (void)close(w.target);
    w.target = -1;
    program = dial(&w);
    (void)snprintf(line, sizeof line, "CONNECT 127.0.0.1:%u HTTP/1.1\r\n\r\n", w.host.host.port);
    say(program, line);
    assert_true(hear(&w, program, bytes, sizeof bytes - 1) > 0);
    assert_int_equal(strncmp(bytes, "HTTP/1.1 502 ", 13), 0);
    assert_int_equal(w.refused, 0);
    (void)close(program);
    world_close(&w);
}

static void bytes_are_bounded(void **state)
{
    char line[128], bytes[8192], flood[4096];
    struct world w;
    int program, host;

    (void)state;
    world_open(&w, 2000);
    program = dial(&w);
    (void)snprintf(line, sizeof line, "CONNECT 127.0.0.1:%u HTTP/1.1\r\n\r\n", w.host.host.port);
    say(program, line);
    host = answer_call(&w);
    assert_true(hear(&w, program, bytes, 39) == 39);
    memset(flood, 'x', sizeof flood);
    assert_int_equal(fd_write_all(host, flood, sizeof flood), 0);
    assert_int_equal(hear(&w, program, bytes, sizeof bytes - 1), 0);
    assert_int_equal(w.full, 1);
    (void)close(host);
    (void)close(program);
    program = dial(&w); /* and nobody gets through any more */
    say(program, line);
    assert_int_equal(hear(&w, program, bytes, sizeof bytes - 1), 0);
    assert_int_equal(w.full, 1);
    (void)close(program);
    world_close(&w);
}

static void only_a_listener_will_do(void **state)
{
    struct relay *r = NULL;
    int pair[2];
    struct err e;

    (void)state;
    assert_int_equal(fd_socketpair(SOCK_STREAM, pair), 0);
    assert_int_equal(relay_open(&(struct relay_conf){0}, pair[0], &r, &e), -1);
    assert_null(r);
    (void)close(pair[1]);
    relay_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tunnels),
        cmocka_unit_test(plain_requests_are_rewritten),
        cmocka_unit_test(other_requests_are_refused),
        cmocka_unit_test(a_tunnel_carries_bytes_both_ways),
        cmocka_unit_test(one_plain_request_and_no_more),
        cmocka_unit_test(other_hosts_are_refused_and_told_of),
        cmocka_unit_test(a_host_that_is_not_there),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(only_a_listener_will_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
