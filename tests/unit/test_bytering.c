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

#include "proc/bytering.h"

enum { OUT, ERR, TURNS = 20000, PIECE = 7000 };

/* Numbers without an order, the same in every run. */
static unsigned next_number(void)
{
    static unsigned state = 7;

    state = state * 1103515245 + 12345;
    return state >> 8;
}

/* What byte number `at` of the test's stream is. */
static char byte_at(uint64_t at)
{
    return (char)(at * 31 + at / 251);
}

static int stream_at(uint64_t at)
{
    return (int)(at / 1000 % 2);
}

/* Puts bytes from `at` on, split where the stream changes. */
static void put(struct bytering *r, uint64_t at, size_t n)
{
    static char text[1 << 22];

    while (n > 0) {
        size_t part = 1000 - (size_t)(at % 1000);

        part = part < n ? part : n;
        for (size_t i = 0; i < part; i++)
            text[i] = byte_at(at + i);
        bytering_put(r, stream_at(at), text, part);
        at += part;
        n -= part;
    }
}

/* Reads everything from `at` on; returns how many bytes were missing. */
static uint64_t read_all(const struct bytering *r, uint64_t *at)
{
    uint64_t gap = 0;

    for (;;) {
        struct bytering_piece p = bytering_read(r, *at);

        gap += p.gap;
        *at = p.at + p.n;
        if (p.n == 0)
            return gap;
        for (size_t i = 0; i < p.n; i++) {
            assert_int_equal(p.p[i], byte_at(p.at + i));
            assert_int_equal(p.stream, stream_at(p.at + i));
        }
    }
}

static void a_reader_that_follows_misses_nothing(void **state)
{
    uint64_t shared = 0, wrote = 0, at = 0;
    struct bytering r;

    (void)state;
    bytering_init(&r, &shared);
    for (int i = 0; i < TURNS; i++) {
        size_t n = next_number() % PIECE;

        put(&r, wrote, n);
        wrote += n;
        if (next_number() % 3 == 0)
            assert_int_equal(read_all(&r, &at), 0);
    }
    assert_int_equal(read_all(&r, &at), 0);
    assert_true(at == wrote);
    bytering_done(&r);
    assert_int_equal(shared, 0);
}

static void what_is_gone_is_a_gap_of_that_length(void **state)
{
    uint64_t shared = 0, at = 10, gap;
    struct bytering r;

    (void)state;
    bytering_init(&r, &shared);
    put(&r, 0, 3 * BYTERING_MAX);
    gap = read_all(&r, &at);
    assert_int_equal(gap, 2 * BYTERING_MAX - 10);
    assert_int_equal(at, 3 * BYTERING_MAX);
    assert_int_equal(shared, BYTERING_MAX);
    bytering_done(&r);
}

static void one_piece_may_be_longer_than_the_ring(void **state)
{
    uint64_t shared = 0;
    char *text = calloc(1, 2 * BYTERING_MAX);
    struct bytering_piece p;
    struct bytering r;

    (void)state;
    text[2 * BYTERING_MAX - 1] = 'z';
    bytering_init(&r, &shared);
    bytering_put(&r, ERR, text, 2 * BYTERING_MAX);
    p = bytering_read(&r, 2 * BYTERING_MAX - 1);
    assert_int_equal(p.n, 1);
    assert_int_equal(*p.p, 'z');
    assert_int_equal(p.stream, ERR);
    bytering_done(&r);
    free(text);
}

static void a_ring_is_small_where_others_have_taken_the_room(void **state)
{
    uint64_t shared = BYTERING_SHARED_MAX, at = 0;
    struct bytering r;

    (void)state;
    bytering_init(&r, &shared);
    put(&r, 0, BYTERING_MAX);
    assert_int_equal(r.room, BYTERING_SURE);
    assert_int_equal(read_all(&r, &at), BYTERING_MAX - BYTERING_SURE);
    bytering_done(&r);
    assert_int_equal(shared, BYTERING_SHARED_MAX);
}

static void streams_may_change_with_every_byte(void **state)
{
    uint64_t shared = 0, at = 0, gap;
    struct bytering r;

    (void)state;
    bytering_init(&r, &shared);
    for (int i = 0; i < 3 * BYTERING_SEGMENTS_MAX; i++)
        bytering_put(&r, i % 2, "x", 1);
    gap = bytering_read(&r, at).gap;
    assert_true(gap > 0 && gap < 3 * BYTERING_SEGMENTS_MAX);
    for (at = gap; at < r.next; at++) {
        struct bytering_piece p = bytering_read(&r, at);

        assert_int_equal(p.n, 1);
        assert_int_equal(p.stream, at % 2);
    }
    bytering_done(&r);
}

static void a_ring_that_was_emptied_tells_a_gap_and_goes_on(void **state)
{
    uint64_t shared = 0;
    struct bytering_piece p;
    struct bytering r;

    (void)state;
    bytering_init(&r, &shared);
    bytering_put(&r, OUT, "abc", 3);
    bytering_done(&r);
    bytering_put(&r, OUT, "de", 2);
    p = bytering_read(&r, 0);
    assert_int_equal(p.gap, 3);
    assert_memory_equal(p.p, "de", 2);
    bytering_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_that_follows_misses_nothing),
        cmocka_unit_test(what_is_gone_is_a_gap_of_that_length),
        cmocka_unit_test(one_piece_may_be_longer_than_the_ring),
        cmocka_unit_test(a_ring_is_small_where_others_have_taken_the_room),
        cmocka_unit_test(streams_may_change_with_every_byte),
        cmocka_unit_test(a_ring_that_was_emptied_tells_a_gap_and_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
