/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

static void appends_and_terminates(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(1000);

    (void)state;
    assert_int_equal(buf_puts(&b, "ab"), 0);
    assert_int_equal(buf_putc(&b, 'c'), 0);
    assert_int_equal(buf_printf(&b, "-%d-%s", 42, "x"), 0);
    assert_int_equal(buf_put(&b, "\0y", 2), 0);
    assert_int_equal(b.n, 10);
    assert_memory_equal(b.p, "abc-42-x\0y\0", 11);
    assert_false(b.failed);
}

static void the_maximum_is_exact_and_failure_is_sticky(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(5);

    (void)state;
    assert_int_equal(buf_puts(&b, "12345"), 0);
    assert_int_equal(buf_putc(&b, '6'), -1);
    assert_true(b.failed);
    assert_string_equal(b.p, "12345");
    assert_int_equal(buf_put(&b, "", 0), -1);
    buf_clear(&b);
    assert_false(b.failed);
    assert_int_equal(b.n, 0);
    assert_string_equal(b.p, "");
    assert_int_equal(buf_puts(&b, "abc"), 0);
    assert_int_equal(buf_printf(&b, "%s", "def"), -1);
    assert_string_equal(b.p, "abc");
    assert_int_equal(b.n, 3);
}

static void printf_fits_exactly(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(600);
    char wide[600];

    (void)state;
    assert_int_equal(buf_printf(&b, "%255s", "x"), 0); /* the first allocation is 256 bytes */
    assert_int_equal(b.n, 255);
    assert_int_equal(buf_printf(&b, "%345s", "y"), 0);
    assert_int_equal(b.n, 600);
    assert_int_equal(buf_printf(&b, "%s", "z"), -1);
    memset(wide, ' ', sizeof wide);
    wide[254] = 'x';
    wide[599] = 'y';
    assert_memory_equal(b.p, wide, 600);
}

static void a_buffer_without_maximum_takes_nothing(void **state)
{
    cleanup_with(buf_done) struct buf b = {0};

    (void)state;
    assert_int_equal(buf_put(&b, "", 0), 0);
    assert_string_equal(b.p, "");
    assert_int_equal(buf_putc(&b, 'x'), -1);
}

static void consume_drops_the_front(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(100);

    (void)state;
    buf_consume(&b, 0);
    assert_int_equal(buf_puts(&b, "hello world"), 0);
    buf_consume(&b, 6);
    assert_string_equal(b.p, "world");
    buf_consume(&b, 5);
    assert_int_equal(b.n, 0);
    assert_string_equal(b.p, "");
}

static void take_hands_over(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(100);
    cleanup_free char *p = NULL;
    size_t n;

    (void)state;
    assert_int_equal(buf_puts(&b, "mine"), 0);
    p = buf_take(&b, &n);
    assert_string_equal(p, "mine");
    assert_int_equal(n, 4);
    assert_null(b.p);
    assert_int_equal(b.max, 100);
    assert_int_equal(buf_puts(&b, "again"), 0);
    assert_string_equal(b.p, "again");
}

static void growth_keeps_everything(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(1 << 20);

    (void)state;
    for (uint32_t i = 0; i < 1 << 18; i++)
        assert_int_equal(buf_put(&b, &i, sizeof i), 0);
    assert_int_equal(b.n, 1 << 20);
    assert_int_equal(buf_putc(&b, 'x'), -1);
    for (uint32_t i = 0; i < 1 << 18; i++)
        assert_memory_equal(b.p + i * sizeof i, &i, sizeof i);
}

static void huge_requests_do_not_wrap(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(100);

    (void)state;
    assert_int_equal(buf_puts(&b, "x"), 0);
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -1);
    buf_clear(&b);
    assert_int_equal(buf_reserve(&b, SIZE_MAX - 1), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_and_terminates),
        cmocka_unit_test(the_maximum_is_exact_and_failure_is_sticky),
        cmocka_unit_test(printf_fits_exactly),
        cmocka_unit_test(a_buffer_without_maximum_takes_nothing),
        cmocka_unit_test(consume_drops_the_front),
        cmocka_unit_test(take_hands_over),
        cmocka_unit_test(growth_keeps_everything),
        cmocka_unit_test(huge_requests_do_not_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
