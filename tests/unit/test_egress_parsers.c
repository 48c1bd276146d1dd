/* SPDX-License-Identifier: MIT */
/* What doors read: client hellos, questions for names, HTTP heads, SOCKS; and addresses. */
#include <arpa/inet.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "egress/address.h"
#include "egress/dns.h"
#include "egress/hello.h"
#include "egress/http_request.h"
#include "egress/names.h"
#include "egress/socks.h"

/* ---- TLS ---- */

struct bytes_out {
    uint8_t p[1024];
    size_t n;
};

static void put(struct bytes_out *o, const void *p, size_t n)
{
    memcpy(o->p + o->n, p, n);
    o->n += n;
}

static void put16(struct bytes_out *o, size_t v)
{
    const uint8_t b[] = {(uint8_t)(v >> 8), (uint8_t)v};

    put(o, b, 2);
}

static void extension(struct bytes_out *o, unsigned kind, const void *body, size_t n)
{
    put16(o, kind);
    put16(o, n);
    put(o, body, n);
}

static void name_extension(struct bytes_out *o, const char *name)
{
    struct bytes_out body = {.n = 0};
    size_t n = strlen(name);

    put16(&body, n + 3);
    put(&body, "\0", 1);
    put16(&body, n);
    put(&body, name, n);
    extension(o, 0, body.p, body.n);
}

static size_t hello(const struct bytes_out *extensions, uint8_t out[1024])
{
    struct bytes_out b = {.n = 0}, record = {.n = 0};
    uint8_t random[34] = {3, 3};

    put(&b, random, sizeof random);
    put(&b, "\0", 1);
    put(&b, "\0\2\x13\1\1\0", 6);
    put16(&b, extensions->n);
    put(&b, extensions->p, extensions->n);
    put(&record, "\x16\3\1", 3);
    put16(&record, b.n + 4);
    put(&record, "\1\0", 2);
    put16(&record, b.n);
    put(&record, b.p, b.n);
    memcpy(out, record.p, record.n);
    return record.n;
}

static void the_name_of_a_hello(void **state)
{
    struct bytes_out e = {.n = 0};
    char name[EGRESS_NAME_MAX + 1];
    uint8_t text[1024];
    size_t n;

    (void)state;
    extension(&e, 16, "\0\3\2h2", 5);
    name_extension(&e, "Example.COM");
    n = hello(&e, text);
    assert_int_equal(hello_read(text, n, name), HELLO_NAME);
    assert_string_equal(name, "example.com");
    for (size_t i = 0; i < n; i++)
        assert_int_equal(hello_read(text, i, name), HELLO_MORE);
    name_extension(&e, "other.example");
    n = hello(&e, text);
    assert_int_equal(hello_read(text, n, name), HELLO_BAD);
}

static void hellos_that_are_refused(void **state)
{
    struct bytes_out e = {.n = 0};
    char name[EGRESS_NAME_MAX + 1];
    uint8_t text[1024];
    size_t n = hello(&e, text);

    (void)state;
    assert_int_equal(hello_read(text, n, name), HELLO_NO_NAME);
    name_extension(&e, "outer.example");
    extension(&e, 0xfe0d, "x", 1);
    n = hello(&e, text);
    assert_int_equal(hello_read(text, n, name), HELLO_ECH);
    e.n = 0;
    name_extension(&e, "127.0.0.1");
    n = hello(&e, text);
    assert_int_equal(hello_read(text, n, name), HELLO_BAD);
    e.n = 0;
    name_extension(&e, "two.example");
    n = hello(&e, text);
    text[4]--; /* a hello in several records */
    assert_int_equal(hello_read(text, n, name), HELLO_BAD);
    assert_int_equal(hello_read((const uint8_t *)"GET / HTTP/1.1", 14, name), HELLO_BAD);
}

/* ---- names ---- */

static void questions_and_answers(void **state)
{
    static const uint8_t question[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\4PyPI\3org\0\0\1\0\1";
    const size_t n = sizeof question - 1;
    uint8_t out[DNS_MAX];
    struct dns_question q;

    (void)state;
    assert_true(dns_read(question, n, &q));
    assert_true(q.good && q.recursion);
    assert_string_equal(q.name, "pypi.org");
    assert_int_equal(q.type, DNS_TYPE_A);
    assert_int_equal(q.n, n);
    assert_int_equal(dns_answer(question, &q, DNS_OK, htonl(0xc6120002), out), n + 16);
    assert_memory_equal(out, "\x12\x34\x81\x80\0\1\0\1\0\0\0\0", 12);
    assert_memory_equal(out + n, "\xc0\x0c\0\1\0\1\0\0\0\x1e\0\4\xc6\x12\0\2", 16);
    assert_int_equal(dns_answer(question, &q, DNS_NO_NAME, 0, out), n);
    assert_int_equal(out[3] & 15, DNS_NO_NAME);
    for (size_t i = 0; i < n; i++)
        assert_false(dns_read(question, i, &q));
}

static void addresses_of_names(void **state)
{
    struct names t = {0};
    uint32_t first = names_address(&t, "a.example"), second = names_address(&t, "b.example");
    char name[16];

    (void)state;
    assert_int_equal(ntohl(first), 0xc6120002);
    assert_int_not_equal(first, second);
    assert_int_equal(names_address(&t, "a.example"), first);
    assert_string_equal(names_of(&t, second), "b.example");
    assert_null(names_of(&t, htonl(0xc6120001)));
    assert_null(names_of(&t, htonl(0x7f000001)));
    for (int i = 0; i < NAMES_MAX; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)names_address(&t, name);
    }
    assert_int_equal(names_address(&t, "one.more"), 0);
    assert_int_equal(names_address(&t, "a.example"), first);
    names_done(&t);
}

/* ---- HTTP ---- */

static struct request request; /* NOLINT: large */

static enum egress_verdict parse(const char *text)
{
    static char room[4096]; /* NOLINT: what the request points into */
    size_t n = strlen(text);

    memcpy(room, text, n + 1);
    return request_read(room, n, &request);
}

static void tunnels(void **state)
{
    (void)state;
    assert_int_equal(parse("CONNECT Pypi.org:443 HTTP/1.1\r\nHost: x\r\n\r\n"), EGRESS_ALLOWED);
    assert_true(request.tunnel);
    assert_string_equal(request.host, "pypi.org");
    assert_int_equal(request.port, 443);
    assert_int_equal(parse("CONNECT [::1]:1 HTTP/1.0\r\n\r\n"), EGRESS_ALLOWED);
    assert_string_equal(request.host, "::1");
    assert_int_equal(parse("CONNECT 0x7f000001:443 HTTP/1.0\r\n\r\n"), EGRESS_ADDRESS);
}

static void plain_requests_are_rewritten(void **state)
{
    struct buf out = BUF_INIT(4096);

    (void)state;
    assert_int_equal(
        parse("GET http://h:81/a/../b?c=d#e HTTP/1.1\r\nHost: other\r\nAccept: */*\r\n"
              "Proxy-Authorization: x\r\nCONNECTION: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
              "TE: trailers\r\nContent-Length: 5\r\nAuthorization: Basic eA==\r\n\r\n"),
        EGRESS_ALLOWED);
    assert_true(request.absolute && request.clean);
    assert_string_equal(request.path, "/b");
    request_write(&request, request.host, request.port, true, &out);
    assert_string_equal(out.p,
                        "GET /b?c=d HTTP/1.1\r\nHost: h:81\r\nConnection: close\r\n"
                        "Content-Length: 5\r\nAccept: */*\r\nAuthorization: Basic eA==\r\n\r\n");
    buf_clear(&out);
    request_write(&request, request.host, request.port, false, &out);
    assert_memory_equal(out.p, "GET /a/../b?c=d HTTP/1.1\r\n", 26);
    buf_clear(&out);
    assert_int_equal(parse("GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: "
                           "websocket\r\nSec-WebSocket-Key: x\r\n\r\n"),
                     EGRESS_ALLOWED);
    assert_true(request.upgrades && !request.absolute);
    request_write(&request, "h", 80, false, &out);
    assert_string_equal(out.p, "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: "
                               "websocket\r\nSec-WebSocket-Key: x\r\n\r\n");
    buf_done(&out);
}

static void other_requests_are_refused(void **state)
{
    static const char *const bad[] = {
        "GET https://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://h?x HTTP/1.1\r\nHost: h\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
        "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n folded: x\r\n\r\n",
        "CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n",
        "CONNECT h:0 HTTP/1.1\r\nHost: h\r\n\r\n",
        "CONNECT u@h:443 HTTP/1.1\r\nHost: h\r\n\r\n",
        "CONNECT h:443 HTTP/2.0\r\nHost: h\r\n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (parse(bad[i]) == EGRESS_ALLOWED)
            fail_msg("not refused: %s", bad[i]);
}

/* ---- SOCKS ---- */

static void socks(void **state)
{
    static const uint8_t named[] = "\5\1\0\3\10Pypi.org\1\xbb", four[] = "\5\1\0\1\xc6\x12\0\2\0P";
    struct socks_request r;

    (void)state;
    assert_int_equal(socks_greeting((const uint8_t *)"\5\2\1\0", 4), 4);
    assert_int_equal(socks_greeting((const uint8_t *)"\5\2\1", 3), 0);
    assert_int_equal(socks_greeting((const uint8_t *)"\5\1\2", 3), -1);
    assert_int_equal(socks_request(named, sizeof named - 1, &r), (int)sizeof named - 1);
    assert_string_equal(r.host, "pypi.org");
    assert_int_equal(r.port, 443);
    assert_true(r.connect);
    for (size_t i = 0; i < sizeof named - 1; i++)
        assert_int_equal(socks_request(named, i, &r), 0);
    assert_int_equal(socks_request(four, sizeof four - 1, &r), (int)sizeof four - 1);
    assert_int_equal(ntohl(r.v4), 0xc6120002);
    assert_int_equal(r.kind, EGRESS_HOST_ADDRESS);
    assert_int_equal(socks_request((const uint8_t *)"\5\1\0\2aaaaaa", 10, &r), -1);
}

/* ---- addresses ---- */

static bool is_public(const char *text)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};

    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        return address_is_public((struct sockaddr *)&four);
    assert_int_equal(inet_pton(AF_INET6, text, &six.sin6_addr), 1);
    return address_is_public((struct sockaddr *)&six);
}

static void special_addresses_are_not_public(void **state)
{
    static const char *const special[] = {
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "::8.8.8.8",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "4000::1",
    };
    static const char *const good[] = {"1.1.1.1",         "8.8.8.8",         "172.15.0.1",
                                       "172.32.0.1",      "100.128.0.1",     "198.20.0.1",
                                       "223.255.255.255", "2606:4700::1111", "2a00:1450::1"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (is_public(special[i]))
            fail_msg("%s", special[i]);
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!is_public(good[i]))
            fail_msg("%s", good[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_of_a_hello),
        cmocka_unit_test(hellos_that_are_refused),
        cmocka_unit_test(questions_and_answers),
        cmocka_unit_test(addresses_of_names),
        cmocka_unit_test(tunnels),
        cmocka_unit_test(plain_requests_are_rewritten),
        cmocka_unit_test(other_requests_are_refused),
        cmocka_unit_test(socks),
        cmocka_unit_test(special_addresses_are_not_public),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
