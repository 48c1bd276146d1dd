/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/logring.h"

struct reader {
    struct logreader base;
    unsigned woken;
};

static void on_wake(void *user)
{
    struct reader *r = user;

    r->woken++;
}

static void put(struct logring *r, uint64_t number)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)number);

    logring_put(r, (int)(number % 2), text, (size_t)n,
                (struct logtime){(int64_t)number, (int32_t)number});
}

static void put_range(struct logring *r, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++)
        put(r, i);
}

/* Reads one line, which must be the one of that number. */
static void expect(struct reader *r, uint64_t number)
{
    uint64_t got, gap;
    const struct logline *l = logreader_next(&r->base, &got, &gap);
    char text[32];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)number);

    assert_non_null(l);
    assert_int_equal(gap, 0);
    assert_int_equal(got, number);
    assert_int_equal(l->n, n);
    assert_memory_equal(l->text, text, (size_t)n);
    assert_int_equal(l->at_s, number);
    assert_int_equal(l->stream, number % 2);
}

static void expect_nothing(struct reader *r)
{
    uint64_t got, gap;

    assert_null(logreader_next(&r->base, &got, &gap));
    assert_int_equal(gap, 0);
}

static void history_then_live_without_gap_or_duplicate(void **state)
{
    uint64_t shared = 0;
    struct reader a = {.woken = 0};
    struct logring r;

    (void)state;
    logring_init(&r, &shared);
    put_range(&r, 1, 3);
    logreader_attach(&a.base, &r, 0, on_wake, &a);
    for (uint64_t i = 1; i <= 3; i++)
        expect(&a, i);
    expect_nothing(&a);
    put(&r, 4);
    assert_int_equal(a.woken, 1);
    expect(&a, 4);
    assert_false(logreader_at_end(&a.base));
    logring_end(&r);
    assert_int_equal(a.woken, 2);
    assert_true(logreader_at_end(&a.base));
    logreader_detach(&a.base);
    logring_done(&r);
    assert_int_equal(shared, 0);
}

static void without_readers_the_newest_lines_are_kept(void **state)
{
    uint64_t shared = 0;
    struct reader a;
    struct logring r;

    (void)state;
    logring_init(&r, &shared);
    put_range(&r, 1, LOGRING_LINES + 500);
    logreader_attach(&a.base, &r, 0, on_wake, &a);
    for (uint64_t i = 501; i <= LOGRING_LINES + 500; i++)
        expect(&a, i);
    expect_nothing(&a);
    logreader_detach(&a.base);
    logring_done(&r);
}

static void a_slow_reader_keeps_what_it_needs_and_lets_go_when_it_leaves(void **state)
{
    uint64_t shared = 0;
    struct reader slow = {.woken = 0}, fast = {.woken = 0};
    struct logring r;

    (void)state;
    logring_init(&r, &shared);
    logreader_attach(&slow.base, &r, 0, on_wake, &slow);
    logreader_attach(&fast.base, &r, 0, on_wake, &fast);
    for (uint64_t i = 1; i <= 3 * LOGRING_LINES; i++) {
        put(&r, i);
        expect(&fast, i);
    }
    for (uint64_t i = 1; i <= 3 * LOGRING_LINES; i++)
        expect(&slow, i);
    logreader_detach(&slow.base);
    logreader_detach(&fast.base);
    assert_int_equal(r.next - r.first, LOGRING_LINES);
    logring_done(&r);
    assert_int_equal(shared, 0);
}

static void beyond_the_budget_the_oldest_go_and_the_reader_is_told(void **state)
{
    static char big[LOGRING_LINE_MAX];
    uint64_t shared = 0, got, gap;
    struct reader a = {.woken = 0};
    const struct logline *l;
    struct logring r;

    (void)state;
    logring_init(&r, &shared);
    logreader_attach(&a.base, &r, 0, on_wake, &a);
    for (int i = 0; i < 100; i++)
        logring_put(&r, 0, big, sizeof big, (struct logtime){0, 0});
    assert_true(r.bytes <= LOGRING_BYTES_MAX && r.bytes == shared);
    l = logreader_next(&a.base, &got, &gap);
    assert_null(l);
    assert_int_equal(gap, r.first - 1);
    l = logreader_next(&a.base, &got, &gap);
    assert_non_null(l);
    assert_int_equal(got, gap + r.first);
    logreader_detach(&a.base);
    logring_done(&r);
}

static void readers_can_resume_anywhere(void **state)
{
    uint64_t shared = 0, got, gap;
    struct reader a;
    struct logring r;

    (void)state;
    logring_init(&r, &shared);
    put_range(&r, 1, LOGRING_LINES + 100);
    logreader_attach(&a.base, &r, 5000, on_wake, &a);
    expect(&a, 5000);
    logreader_detach(&a.base);
    logreader_attach(&a.base, &r, 51, on_wake, &a);
    assert_null(logreader_next(&a.base, &got, &gap));
    assert_int_equal(gap, 50);
    expect(&a, 101);
    logreader_detach(&a.base);
    logreader_attach(&a.base, &r, UINT64_MAX, on_wake, &a); /* behind the end: what comes next */
    expect_nothing(&a);
    put(&r, LOGRING_LINES + 101);
    expect(&a, LOGRING_LINES + 101);
    logreader_detach(&a.base);
    logring_done(&r);
}

static void rings_share_a_budget(void **state)
{
    static char big[LOGRING_LINE_MAX];
    uint64_t shared = 0;
    struct logring r[12];

    (void)state;
    for (size_t i = 0; i < 12; i++) {
        logring_init(&r[i], &shared);
        for (int k = 0; k < 60; k++)
            logring_put(&r[i], 0, big, sizeof big, (struct logtime){0, 0});
        assert_true(shared <= LOGRING_SHARED_MAX);
    }
    for (size_t i = 0; i < 12; i++)
        logring_done(&r[i]);
    assert_int_equal(shared, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_then_live_without_gap_or_duplicate),
        cmocka_unit_test(without_readers_the_newest_lines_are_kept),
        cmocka_unit_test(a_slow_reader_keeps_what_it_needs_and_lets_go_when_it_leaves),
        cmocka_unit_test(beyond_the_budget_the_oldest_go_and_the_reader_is_told),
        cmocka_unit_test(readers_can_resume_anywhere),
        cmocka_unit_test(rings_share_a_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
