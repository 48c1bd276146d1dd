/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <string.h>

#include "http/api/e2b/envelope.h"

static void a_message_is_found_behind_its_head(void **state)
{
    static const char in[] = "\x00\x00\x00\x00\x02{}rest";
    struct envelope e;

    (void)state;
    assert_int_equal(envelope_take(in, sizeof in - 1, 100, &e), ENVELOPE_OK);
    assert_int_equal(e.flags, 0);
    assert_int_equal(e.n, 2);
    assert_memory_equal(e.p, "{}", 2);
}

static void an_empty_message_and_the_end_are_messages(void **state)
{
    static const char in[] = "\x02\x00\x00\x00\x00";
    struct envelope e;

    (void)state;
    assert_int_equal(envelope_take(in, 5, 0, &e), ENVELOPE_OK);
    assert_int_equal(e.flags, ENVELOPE_END);
    assert_int_equal(e.n, 0);
}

static void every_prefix_is_short(void **state)
{
    static const char in[] = "\x00\x00\x00\x00\x03{ }";
    struct envelope e;

    (void)state;
    for (size_t n = 0; n < 8; n++)
        assert_int_equal(envelope_take(in, n, 100, &e), ENVELOPE_SHORT);
    assert_int_equal(envelope_take(in, 8, 100, &e), ENVELOPE_OK);
}

static void what_is_too_long_is_refused_before_it_has_come(void **state)
{
    static const char in[] = "\x00\xff\xff\xff\xff";
    struct envelope e;

    (void)state;
    assert_int_equal(envelope_take(in, 5, 1 << 20, &e), ENVELOPE_LONG);
    assert_int_equal(envelope_take(in, 5, UINT32_MAX, &e), ENVELOPE_SHORT);
}

static void compression_and_unknown_flags_are_refused(void **state)
{
    struct envelope e;

    (void)state;
    assert_int_equal(envelope_take("\x01\x00\x00\x00\x00", 5, 9, &e), ENVELOPE_FLAGS);
    assert_int_equal(envelope_take("\x80", 1, 9, &e), ENVELOPE_FLAGS);
}

static void a_head_reads_as_it_was_written(void **state)
{
    static const size_t sizes[] = {0, 1, 255, 256, 65536, 0x01020304};
    unsigned char head[ENVELOPE_HEAD];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        envelope_head(ENVELOPE_END, sizes[i], head);
        assert_int_equal(head[0], ENVELOPE_END);
        assert_int_equal((size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 |
                             head[4],
                         sizes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_found_behind_its_head),
        cmocka_unit_test(an_empty_message_and_the_end_are_messages),
        cmocka_unit_test(every_prefix_is_short),
        cmocka_unit_test(what_is_too_long_is_refused_before_it_has_come),
        cmocka_unit_test(compression_and_unknown_flags_are_refused),
        cmocka_unit_test(a_head_reads_as_it_was_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
