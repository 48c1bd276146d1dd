/* SPDX-License-Identifier: MIT */
/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/server/h1.h"

/* Parses a copy of exactly n bytes, so that a sanitizer sees any step beyond. */
static int parse_n(const char *text, size_t n, struct h1_head *ret, char **ret_memory)
{
    char *copy = malloc(n ? n : 1);

    assert_non_null(copy);
    memcpy(copy, text, n);
    *ret_memory = copy;
    return h1_parse_head(copy, n, ret);
}

static int parse_status(const char *text, size_t n)
{
    struct h1_head h;
    cleanup_free char *memory = NULL;

    return parse_n(text, n, &h, &memory);
}

#define GET  "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
#define END  "\r\n\r\n"

/* clang-format off */
static const struct {
    const char *what;
    int status;
    const char *head;
} refused[] = {
    {"length and chunks",        400, POST "Content-Length: 2\r\nTransfer-Encoding: chunked" END},
    {"chunks and length",        400, POST "Transfer-Encoding: chunked\r\nContent-Length: 2" END},
    {"two lengths",              400, POST "Content-Length: 2\r\nContent-Length: 3" END},
    {"two equal lengths",        400, POST "Content-Length: 2\r\nContent-Length: 2" END},
    {"length list",              400, POST "Content-Length: 2, 2" END},
    {"signed length",            400, POST "Content-Length: +2" END},
    {"negative length",          400, POST "Content-Length: -2" END},
    {"length with a tail",       400, POST "Content-Length: 2x" END},
    {"empty length",             400, POST "Content-Length:" END},
    {"hexadecimal length",       400, POST "Content-Length: 0x2" END},
    {"absurd length",            413, POST "Content-Length: 9999999999999999999" END},
    {"blank before the colon",   400, POST "Content-Length : 2" END},
    {"unknown coding",           501, POST "Transfer-Encoding: xchunked" END},
    {"coding list",              501, POST "Transfer-Encoding: gzip, chunked" END},
    {"coding twice",             400,
     POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" END},
    {"coding in HTTP/1.0",       400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked" END},
    {"folded line",              400, GET "X: a\r\n b" END},
    {"folded first line",        400, "GET / HTTP/1.1\r\n Host: a" END},
    {"no Host",                  400, "GET / HTTP/1.1" END},
    {"two Hosts",                400, GET "Host: a" END},
    {"Host with a path",         400, "GET / HTTP/1.1\r\nHost: a/b" END},
    {"HTTP/0.9",                 400, "GET /" END},
    {"HTTP/9.9",                 505, "GET / HTTP/9.9\r\nHost: a" END},
    {"HTTP/2.0",                 505, "PRI * HTTP/2.0" END},
    {"HTTP/1.2",                 505, "GET / HTTP/1.2\r\nHost: a" END},
    {"lower-case http",          400, "GET / http/1.1\r\nHost: a" END},
    {"a word for a version",     400, "GET / HTTP/x.y\r\nHost: a" END},
    {"method with @",            400, "G@T / HTTP/1.1\r\nHost: a" END},
    {"no method",                400, " / HTTP/1.1\r\nHost: a" END},
    {"endless method",           400, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.0" END},
    {"two blanks",               400, "GET  / HTTP/1.1\r\nHost: a" END},
    {"tab in the request line",  400, "GET\t/ HTTP/1.1\r\nHost: a" END},
    {"blank in the target",      400, "GET /a b HTTP/1.1\r\nHost: a" END},
    {"bytes in the target",      400, "GET /\xc3\xa9 HTTP/1.1\r\nHost: a" END},
    {"bare LF in the middle",    400, "GET / HTTP/1.1\nHost: a" END},
    {"bare LF after a field",    400, "GET / HTTP/1.1\r\nHost: a\nX: b" END},
    {"bare CR in a value",       400, GET "X: a\rb" END},
    {"empty name",               400, GET ": b" END},
    {"no colon",                 400, GET "abc" END},
    {"control in a value",       400, GET "X: \x01" END},
    {"DEL in a value",           400, GET "X: \x7f" END},
    {"unknown expectation",      417, GET "Expect: more" END},
    {"empty line first",         400, "\r\n" GET "X: y" END},
};
/* clang-format on */

static void every_doubtful_head_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        int got = parse_status(refused[i].head, strlen(refused[i].head));

        if (got != refused[i].status)
            fail_msg("%s: %d instead of %d", refused[i].what, got, refused[i].status);
    }
}

static void a_nul_is_refused_wherever_it_stands(void **state)
{
    static const char good[] = "GET /path HTTP/1.1\r\nHost: a\r\nX-Y: value\r\n\r\n";
    char bad[sizeof good];

    (void)state;
    for (size_t i = 0; i < sizeof good - 1; i++) {
        memcpy(bad, good, sizeof good);
        bad[i] = '\0';
        assert_int_not_equal(parse_status(bad, sizeof good - 1), 0);
    }
}

static void a_head_cut_anywhere_is_refused(void **state)
{
    static const char good[] = "GET /path HTTP/1.1\r\nHost: a\r\nX-Y: value\r\n\r\n";

    (void)state;
    for (size_t i = 0; i < sizeof good - 1; i++)
        assert_int_not_equal(parse_status(good, i), 0);
    assert_int_equal(parse_status(good, sizeof good - 1), 0);
}

static void a_good_head_is_cut_up(void **state)
{
    static const char text[] =
        "PUT /a?b=c HTTP/1.1\r\nhOsT: h:1\r\nX-Empty:\r\nX-Blank: \t a b \t\r\n"
        "Content-Length: 007\r\nConnection: Foo, CLOSE\r\n"
        "Expect: 100-Continue\r\nX-Text: \xc3\xa9\r\n\r\n";
    struct h1_head h;
    cleanup_free char *memory = NULL;

    (void)state;
    assert_int_equal(parse_n(text, sizeof text - 1, &h, &memory), 0);
    assert_string_equal(h.method, "PUT");
    assert_string_equal(h.target, "/a?b=c");
    assert_string_equal(h1_field(&h, "HOST"), "h:1");
    assert_string_equal(h1_field(&h, "x-empty"), "");
    assert_string_equal(h1_field(&h, "x-blank"), "a b");
    assert_string_equal(h1_field(&h, "x-text"), "\xc3\xa9");
    assert_null(h1_field(&h, "absent"));
    assert_int_equal(h.length, 7);
    assert_int_equal(h.minor, 1);
    assert_true(h.expect);
    assert_false(h.keep);
    assert_false(h.chunked);
    assert_true(h1_has_body(&h));
}

static void keep_alive_follows_the_version(void **state)
{
    static const struct {
        const char *head;
        bool keep;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n",                                                true },
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",                           false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n",                          true },
        {"GET / HTTP/1.0\r\n\r\n",                                                           false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",                                 true },
        {"GET / HTTP/1.0\r\nConnection: keep-alive,close\r\n\r\n",                           false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct h1_head h;
        cleanup_free char *memory = NULL;

        assert_int_equal(parse_n(rows[i].head, strlen(rows[i].head), &h, &memory), 0);
        assert_int_equal(h.keep, rows[i].keep);
    }
}

static void fields_are_counted(void **state)
{
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n");

    (void)state;
    for (int i = 1; i < H1_FIELDS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "X-%d: y\r\n", i);
    memcpy(text + n, "\r\n", 2);
    assert_int_equal(parse_status(text, n + 2), 0);
    n += (size_t)snprintf(text + n, sizeof text - n, "X-More: y\r\n\r\n");
    assert_int_equal(parse_status(text, n), 431);
}

static void long_targets_and_heads_have_their_own_status(void **state)
{
    cleanup_free char *text = malloc(H1_HEAD_MAX + 1);
    size_t scanned = 0;

    (void)state;
    assert_non_null(text);
    memset(text, 'a', H1_HEAD_MAX + 1);
    memcpy(text, "GET /", 5);
    assert_int_equal(h1_head_end(text, 4096, &scanned), 0);
    assert_int_equal(h1_head_end(text, H1_TARGET_MAX + 100, &scanned), -414);
    memcpy(text, "GET / HTTP/1.1\r\nX: ", 19);
    scanned = 0;
    assert_int_equal(h1_head_end(text, H1_HEAD_MAX - 1, &scanned), 0);
    assert_int_equal(h1_head_end(text, H1_HEAD_MAX, &scanned), -431);
    memcpy(text + H1_HEAD_MAX - 4, "\r\n\r\n", 4);
    scanned = 0;
    assert_int_equal(h1_head_end(text, H1_HEAD_MAX + 1, &scanned), H1_HEAD_MAX);
}

static void the_end_is_found_whatever_the_pieces(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nrest\r\n\r\n";
    const ssize_t want = (ssize_t)(strlen(text) - 8);
    size_t scanned = 0;

    (void)state;
    for (size_t n = 1; n < (size_t)want; n++)
        assert_int_equal(h1_head_end(text, n, &scanned), 0);
    assert_int_equal(h1_head_end(text, (size_t)want, &scanned), want);
    scanned = 0;
    assert_int_equal(h1_head_end(text, sizeof text - 1, &scanned), want);
}

/* Decodes in pieces of `step` bytes. Returns the payload's length, -1 malformed, -2 unfinished. */
static ssize_t decode(const char *in, size_t n, size_t step, char *out, size_t *ret_used)
{
    struct h1_chunks c = {.state = H1_CHUNK_SIZE};
    size_t at = 0, out_n = 0;

    while (at < n && c.state != H1_CHUNK_DONE) {
        const char *data;
        size_t data_n;
        ssize_t k = h1_chunk(&c, in + at, n - at < step ? n - at : step, &data, &data_n);

        if (k < 0)
            return -1;
        memcpy(out + out_n, data, data_n);
        out_n += data_n;
        at += (size_t)k;
    }
    *ret_used = at;
    return c.state == H1_CHUNK_DONE ? (ssize_t)out_n : -2;
}

static void chunks_are_decoded_whatever_the_pieces(void **state)
{
    static const char text[] = "5\r\nhello\r\n006;a=\"b c\"\r\n world\r\nA\r\n0123456789\r\n"
                               "0;x\r\nTrailer: y\r\nOther: z\r\n\r\nNEXT";
    char out[64];
    size_t used;

    (void)state;
    for (size_t step = 1; step < sizeof text; step++) {
        assert_int_equal(decode(text, sizeof text - 1, step, out, &used), 21);
        assert_memory_equal(out, "hello world0123456789", 21);
        assert_int_equal(used, sizeof text - 1 - 4);
    }
}

static void malformed_chunks_are_refused(void **state)
{
    static const char *const bad[] = {
        "0x2\r\nab\r\n0\r\n\r\n",    "2\nab\r\n0\r\n\r\n",    "2\r\nab0\r\n\r\n",
        "2\r\nabc\r\n0\r\n\r\n",     "2\r\nab\n0\r\n\r\n",    "\r\nab\r\n0\r\n\r\n",
        "-2\r\nab\r\n0\r\n\r\n",     "+2\r\nab\r\n0\r\n\r\n", " 2\r\nab\r\n0\r\n\r\n",
        "2 \r\nab\r\n0\r\n\r\n",     "g\r\nab\r\n0\r\n\r\n",  ";a\r\nab\r\n0\r\n\r\n",
        "2\r\nab\r\n0\r\nx\n\r\n",   "2\r\nab\r\n0\n\n",      "2\r\rab\r\n0\r\n\r\n",
        "2;\x01\r\nab\r\n0\r\n\r\n", "1000000000000000\r\na", "0000000000000000\r\n\r\n",
    };
    char out[64];
    size_t used;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        for (size_t step = 1; step < 8; step++)
            if (decode(bad[i], strlen(bad[i]), step, out, &used) != -1)
                fail_msg("accepted: %s", bad[i]);
}

static void what_nobody_reads_is_bounded(void **state)
{
    size_t n = H1_CHUNK_JUNK_MAX + 64;
    cleanup_free char *text = malloc(n);
    char out[64];
    size_t used;

    (void)state;
    assert_non_null(text);
    memset(text, 'e', n);
    memcpy(text, "2;", 2);
    assert_int_equal(decode(text, n, n, out, &used), -1);
    memcpy(text, "0\r\n", 3);
    assert_int_equal(decode(text, n, n, out, &used), -1);
}

static bool parse_answer(const char *text, struct h1_answer *ret)
{
    static char copy[1024];

    (void)snprintf(copy, sizeof copy, "%s", text);
    return h1_parse_answer(copy, strlen(copy), ret);
}

static void an_answer_is_cut_up(void **state)
{
    struct h1_answer a;

    (void)state;
    assert_true(parse_answer("HTTP/1.1 302 Found It\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
                             "Content-Length: 0\r\n\r\n",
                             &a));
    assert_int_equal(a.status, 302);
    assert_string_equal(a.reason, "Found It");
    assert_int_equal(a.head.fields_n, 3);
    assert_int_equal(a.head.length, 0);
    assert_true(parse_answer("HTTP/1.0 204\r\n\r\n", &a));
    assert_string_equal(a.reason, "");
    assert_int_equal(a.head.length, -1);
}

static void what_is_no_answer_is_refused(void **state)
{
    static const char *const bad[] = {
        "HTTP/1.1 99 x\r\n\r\n",
        "HTTP/1.1 600 x\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 200OK\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\nA: b\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n",
    };
    struct h1_answer a;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(parse_answer(bad[i], &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_doubtful_head_is_refused),
        cmocka_unit_test(a_nul_is_refused_wherever_it_stands),
        cmocka_unit_test(a_head_cut_anywhere_is_refused),
        cmocka_unit_test(a_good_head_is_cut_up),
        cmocka_unit_test(keep_alive_follows_the_version),
        cmocka_unit_test(fields_are_counted),
        cmocka_unit_test(long_targets_and_heads_have_their_own_status),
        cmocka_unit_test(the_end_is_found_whatever_the_pieces),
        cmocka_unit_test(chunks_are_decoded_whatever_the_pieces),
        cmocka_unit_test(malformed_chunks_are_refused),
        cmocka_unit_test(what_nobody_reads_is_bounded),
        cmocka_unit_test(an_answer_is_cut_up),
        cmocka_unit_test(what_is_no_answer_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
