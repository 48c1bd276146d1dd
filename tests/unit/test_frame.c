/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/frame.h"
#include "core/port_jail.h"
#include "core/result.h"

/* Writes down what the reader hands over: kind, length, payload. */
static void note(void *user, char kind, const char *p, size_t n)
{
    struct buf *log = user;

    assert_int_equal(buf_printf(log, "%c%zu:", kind, n), 0);
    assert_int_equal(buf_put(log, p, n), 0);
    assert_int_equal(buf_putc(log, ';'), 0);
}

static void a_frame_looks_as_documented(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(100);

    (void)state;
    assert_int_equal(frame_put(&b, FRAME_CODE, "print(1)", 8), 0);
    assert_int_equal(frame_put(&b, FRAME_GO, NULL, 0), 0);
    assert_string_equal(b.p, "C00000008print(1)G00000000");
}

static void put_is_all_or_nothing(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(20);

    (void)state;
    assert_int_equal(frame_put(&b, FRAME_EVENT, "12345678901", 11), 0);
    assert_int_equal(frame_put(&b, FRAME_GO, NULL, 0), -1);
    assert_true(b.failed);
    assert_int_equal(b.n, 20);
    buf_clear(&b);
    assert_int_equal(frame_put(&b, FRAME_EVENT, "123456789012", 12), -1);
    assert_int_equal(b.n, 0);
    buf_clear(&b);
    assert_int_equal(frame_put(&b, FRAME_EVENT, "", SIZE_MAX), -1);
}

static const char stream[] = "P00000002{}R0000000bhello worldE00000000P000000011";
static const char heard[] = "P2:{};R11:hello world;E0:;P1:1;";

/* However the bytes are cut, the frames are the same. */
static void pieces_do_not_matter(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        cleanup_with(buf_done) struct buf log = BUF_INIT(1000);
        struct frame_reader r;
        size_t n = sizeof stream - 1;

        frame_reader_init(&r, 11);
        for (size_t at = 0; at < n; at += piece) {
            size_t now = n - at < piece ? n - at : piece;

            assert_int_equal(frame_reader_feed(&r, stream + at, now, note, &log), 0);
        }
        assert_string_equal(log.p, heard);
        assert_false(r.broken);
        assert_int_equal(r.buf.n, 0);
        frame_reader_done(&r);
    }
}

static void hostile_input_breaks_it_for_good(void **state)
{
    static const struct {
        const char *text;
        bool too_long;
    } cases[] = {
        {"X00000001a",            false},
        {"C00000001a",            false},
        {"\n",                    false},
        {"R0000000A",             false},
        {"R0000000g",             false},
        {"R+0000001",             false},
        {"R 0000001a",            false},
        {"R-",                    false},
        {"R0000000caaaaaaaaaaaa", true },
        {"Rffffffff",             true },
        {"R7fffffff",             true },
        {"R00000001aX",           false},
        {"R00000001aR1x",         false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int bytewise = 0; bytewise < 2; bytewise++) {
            cleanup_with(buf_done) struct buf log = BUF_INIT(1000);
            size_t n = strlen(cases[i].text);
            struct frame_reader r;
            int result = 0;

            frame_reader_init(&r, 11);
            if (!bytewise)
                result = frame_reader_feed(&r, cases[i].text, n, note, &log);
            for (size_t at = 0; bytewise && at < n && result == 0; at++)
                result = frame_reader_feed(&r, cases[i].text + at, 1, note, &log);
            assert_int_equal(result, -1);
            assert_true(r.broken);
            assert_int_equal(r.too_long, cases[i].too_long);
            assert_int_equal(frame_reader_feed(&r, "R000000000", 9, note, &log), -1);
            frame_reader_done(&r);
        }
    }
}

static void an_announced_length_costs_no_memory(void **state)
{
    cleanup_with(buf_done) struct buf log = BUF_INIT(100);
    struct frame_reader r;

    (void)state;
    frame_reader_init(&r, 0xffffffff);
    assert_int_equal(frame_reader_feed(&r, "Rfffffff0abc", 12, note, &log), 0);
    assert_in_range(r.buf.cap, 1, 4096);
    assert_int_equal(log.n, 0);
    frame_reader_done(&r);
}

static void every_name_is_there_and_unique(void **state)
{
    (void)state;
    for (unsigned i = 0; i < END_REASON_COUNT; i++) {
        assert_non_null(end_reason_name((enum end_reason)i));
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(end_reason_name((enum end_reason)i),
                                    end_reason_name((enum end_reason)j));
    }
    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++) {
        assert_non_null(jail_trait_name(i));
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(jail_trait_name(i), jail_trait_name(j));
    }
    assert_string_equal(end_reason_name(END_OOM), "oom");
    assert_string_equal(jail_trait_name(0), "filesystem");
    assert_string_equal(jail_trait_name(11), "cpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_looks_as_documented),
        cmocka_unit_test(put_is_all_or_nothing),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(hostile_input_breaks_it_for_good),
        cmocka_unit_test(an_announced_length_costs_no_memory),
        cmocka_unit_test(every_name_is_there_and_unique),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
