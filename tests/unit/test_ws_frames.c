/* SPDX-License-Identifier: MIT */
/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "http/server/ws_frames.h"

enum { ROOM = 1 << 16, LONGEST = 1000 };

struct peer {
    struct ws_frames *frames;
    struct buf said, heard; /* what was written; messages, each with "T:" or "B:" before and ";" */
    bool close_at_message;
};

static void on_message(void *user, bool text, const char *p, size_t n)
{
    struct peer *w = user;

    (void)buf_puts(&w->heard, text ? "T:" : "B:");
    (void)buf_put(&w->heard, p, n);
    (void)buf_putc(&w->heard, ';');
    if (w->close_at_message)
        ws_frames_close(w->frames, WS_CLOSE_NORMAL, "enough");
}

static void on_write(void *user, const void *p, size_t n)
{
    struct peer *w = user;

    (void)buf_put(&w->said, p, n);
}

static int open_peer(void **state)
{
    struct peer *w = calloc(1, sizeof *w);
    const struct ws_frames_events events = {on_message, on_write, w};

    if (!w)
        return -1;
    w->said = BUF_INIT(ROOM);
    w->heard = BUF_INIT(ROOM);
    w->frames = ws_frames_new(&events, LONGEST);
    *state = w;
    return w->frames ? 0 : -1;
}

static int close_peer(void **state)
{
    struct peer *w = *state;

    ws_frames_free(w->frames);
    buf_done(&w->said);
    buf_done(&w->heard);
    free(w);
    return 0;
}

/* A frame of a client: first byte, payload; masked with zeros or not at all. */
static size_t frame(char *out, unsigned first, bool masked, const char *p, size_t n)
{
    size_t at = 0;

    out[at++] = (char)first;
    if (n < 126) {
        out[at++] = (char)((masked ? 0x80 : 0) | n);
    } else {
        out[at++] = (char)((masked ? 0x80 : 0) | 126);
        out[at++] = (char)(n >> 8);
        out[at++] = (char)n;
    }
    if (masked) {
        memset(out + at, 0, 4);
        at += 4;
    }
    memcpy(out + at, p, n);
    return at + n;
}

static bool feed(struct peer *w, unsigned first, bool masked, const char *text)
{
    char out[4096];
    size_t n = frame(out, first, masked, text, strlen(text));

    return ws_frames_feed(w->frames, out, n);
}

/* The last thing said is a close frame with this code. */
static void assert_closed(const struct peer *w, unsigned code)
{
    const unsigned char *p = (const unsigned char *)w->said.p;

    assert_true(w->said.n >= 4);
    assert_int_equal(p[0], 0x88);
    assert_int_equal(p[2] << 8 | p[3], code);
}

static void messages_come_whole_whatever_pieces_they_come_in(void **state)
{
    struct peer *w = *state;
    char out[256];
    size_t n = frame(out, 0x01, true, "ab", 2);

    n += frame(out + n, 0x89, true, "now", 3); /* a ping between two fragments */
    n += frame(out + n, 0x80, true, "cd", 2);
    n += frame(out + n, 0x82, true, "\xff\x00", 2);
    for (size_t i = 0; i < n; i++)
        assert_true(ws_frames_feed(w->frames, out + i, 1));
    assert_memory_equal(w->heard.p, "T:abcd;B:\xff\x00;", 12);
    assert_memory_equal(w->said.p, "\x8a\x03now", 5);
}

static void what_is_sent_is_not_masked(void **state)
{
    struct peer *w = *state;

    assert_true(ws_frames_send(w->frames, true, "hi", 2));
    assert_true(ws_frames_send(w->frames, false, "\x01", 1));
    assert_memory_equal(w->said.p, "\x81\x02hi\x82\x01\x01", 7);
}

static void a_frame_that_is_not_masked_ends_it(void **state)
{
    struct peer *w = *state;

    assert_false(feed(w, 0x81, false, "hi"));
    assert_int_equal(w->heard.n, 0);
    assert_closed(w, WS_CLOSE_PROTOCOL);
}

static void a_reserved_bit_or_opcode_ends_it(void **state)
{
    struct peer *w = *state;

    assert_false(feed(w, 0xc1, true, "hi"));
    assert_closed(w, WS_CLOSE_PROTOCOL);
}

static void an_unknown_opcode_ends_it(void **state)
{
    struct peer *w = *state;

    assert_false(feed(w, 0x83, true, "hi"));
    assert_closed(w, WS_CLOSE_PROTOCOL);
}

static void text_that_is_none_ends_it(void **state)
{
    struct peer *w = *state;

    assert_false(feed(w, 0x81, true, "\xc3\x28"));
    assert_int_equal(w->heard.n, 0);
    assert_closed(w, 1007);
}

static void a_message_that_is_too_long_ends_it(void **state)
{
    struct peer *w = *state;
    char text[LONGEST + 2];

    memset(text, 'x', LONGEST + 1);
    text[LONGEST + 1] = '\0';
    assert_false(feed(w, 0x82, true, text));
    assert_closed(w, 1009);
}

static void a_close_frame_is_answered(void **state)
{
    struct peer *w = *state;

    assert_false(feed(w, 0x88, true, "\x03\xe8"));
    assert_closed(w, WS_CLOSE_NORMAL);
}

static void nothing_is_heard_or_sent_after_closing(void **state)
{
    struct peer *w = *state;
    char out[256];
    size_t n = frame(out, 0x81, true, "one", 3);

    n += frame(out + n, 0x81, true, "two", 3);
    w->close_at_message = true;
    assert_true(ws_frames_feed(w->frames, out, n));
    assert_memory_equal(w->heard.p, "T:one;", w->heard.n);
    assert_closed(w, WS_CLOSE_NORMAL);
    assert_false(ws_frames_send(w->frames, true, "late", 4));
    assert_false(feed(w, 0x88, true, "\x03\xe8"));
}

static void a_key_has_its_answer(void **state)
{
    char out[WS_ACCEPT_MAX];

    (void)state;
    assert_true(ws_accept_key("dGhlIHNhbXBsZSBub25jZQ==", out));
    assert_string_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_false(ws_accept_key(NULL, out));
    assert_false(ws_accept_key("", out));
    assert_false(ws_accept_key("dGhlIHNhbXBsZSBub25jZQ=", out));
    assert_false(ws_accept_key("dGhlIHNhbXBsZSBub25jZ!==", out));
}

int main(void)
{
#define PEER(fn) cmocka_unit_test_setup_teardown(fn, open_peer, close_peer)
    const struct CMUnitTest tests[] = {
        PEER(messages_come_whole_whatever_pieces_they_come_in),
        PEER(what_is_sent_is_not_masked),
        PEER(a_frame_that_is_not_masked_ends_it),
        PEER(a_reserved_bit_or_opcode_ends_it),
        PEER(an_unknown_opcode_ends_it),
        PEER(text_that_is_none_ends_it),
        PEER(a_message_that_is_too_long_ends_it),
        PEER(a_close_frame_is_answered),
        PEER(nothing_is_heard_or_sent_after_closing),
        cmocka_unit_test(a_key_has_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
