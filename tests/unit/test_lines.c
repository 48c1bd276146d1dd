/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"

enum { ROOM = 4096 };

struct seen {
    char text[ROOM]; /* lines, each ended by '|' */
    size_t n;
    size_t longest;
};

static void see(void *user, const char *p, size_t n)
{
    struct seen *s = user;

    assert_true(s->n + n + 1 < ROOM);
    memcpy(s->text + s->n, p, n);
    s->n += n;
    s->text[s->n++] = '|';
    s->longest = n > s->longest ? n : s->longest;
}

static void feed(struct lines *l, struct seen *s, const char *text)
{
    lines_feed(l, text, strlen(text), see, s);
    s->text[s->n] = '\0';
}

static void lines_come_whole_wherever_the_stream_is_cut(void **state)
{
    static const char text[] = "one\n\ntwo\r\nthree";

    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct lines l = LINES_INIT(64);
        struct seen s = {.n = 0};

        lines_feed(&l, text, cut, see, &s);
        lines_feed(&l, text + cut, sizeof text - 1 - cut, see, &s);
        lines_end(&l, see, &s);
        s.text[s.n] = '\0';
        assert_string_equal(s.text, "one||two\r|three|");
        lines_done(&l);
    }
}

static void a_partial_line_is_held_back(void **state)
{
    struct lines l = LINES_INIT(64);
    struct seen s = {.n = 0};

    (void)state;
    feed(&l, &s, "par");
    assert_string_equal(s.text, "");
    feed(&l, &s, "tial\n");
    assert_string_equal(s.text, "partial|");
    lines_end(&l, see, &s);
    assert_int_equal(s.n, 8);
    lines_done(&l);
}

static void what_is_too_long_comes_in_pieces_and_nothing_is_lost(void **state)
{
    struct lines l = LINES_INIT(10);
    struct seen s = {.n = 0};

    (void)state;
    feed(&l, &s, "0123456789abcdefghij0123\nshort\nexactlyten\n");
    assert_string_equal(s.text, "0123456789|abcdefghij|0123|short|exactlyten|");
    assert_int_equal(s.longest, 10);
    lines_done(&l);
}

static void bytes_are_bytes(void **state)
{
    struct lines l = LINES_INIT(64);
    struct seen s = {.n = 0};

    (void)state;
    lines_feed(&l, "a\0b\n\377\n", 6, see, &s);
    assert_memory_equal(s.text, "a\0b|\377|", 6);
    lines_done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole_wherever_the_stream_is_cut),
        cmocka_unit_test(a_partial_line_is_held_back),
        cmocka_unit_test(what_is_too_long_comes_in_pieces_and_nothing_is_lost),
        cmocka_unit_test(bytes_are_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
