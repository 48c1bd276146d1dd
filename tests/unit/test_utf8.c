/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* The definition, spelled out: decode, then look at the number. Slow and obviously right. */
static bool naive_is_character(const unsigned char *p, size_t n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c;

    if (n == 1)
        return p[0] < 0x80;
    if ((n == 2 && (p[0] & 0xe0) != 0xc0) || (n == 3 && (p[0] & 0xf0) != 0xe0) ||
        (n == 4 && (p[0] & 0xf8) != 0xf0))
        return false;
    c = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return false;
        c = c << 6 | (p[i] & 0x3fu);
    }
    return c >= least[n] && c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
}

static size_t naive_length(const unsigned char *p, size_t n)
{
    for (size_t i = 1; i <= 4 && i <= n; i++)
        if (naive_is_character(p, i))
            return i;
    return 0;
}

static void check_word(uint32_t word)
{
    unsigned char p[4] = {(unsigned char)(word >> 24), (unsigned char)(word >> 16),
                          (unsigned char)(word >> 8), (unsigned char)word};
    bool ok;
    size_t got = utf8_next((char *)p, 4, &ok);
    size_t want = naive_length(p, 4);

    if (ok != (want > 0) || (ok && got != want))
        fail_msg("%08x: %s, length %zu, expected %zu", word, ok ? "good" : "bad", got, want);
}

/* Every lead byte with every second byte, and edges for the rest. */
static void agrees_with_the_definition(void **state)
{
    static const unsigned char edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f,
                                          0xa0, 0xbf, 0xc0, 0xed, 0xff};

    (void)state;
    for (uint32_t two = 0; two < 0x10000; two++)
        for (size_t i = 0; i < sizeof edges; i++)
            for (size_t j = 0; j < sizeof edges; j++)
                check_word(two << 16 | (uint32_t)edges[i] << 8 | edges[j]);
}

static void every_code_point_survives(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x110010; c++) {
        char p[4];
        size_t n = utf8_encode(c, p);
        bool good = c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);

        assert_true(utf8_is_valid(p, n));
        assert_int_equal(utf8_decode(p, n), good ? c : 0xfffd);
    }
}

/* Lengths of the parts Python's errors="replace" turns into one U+FFFD each. */
static void bad_parts_are_maximal(void **state)
{
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {
        {"\x80",          1},
        {"\xbf\x80",      1},
        {"\xc0\xaf",      1},
        {"\xc1\x80",      1},
        {"\xc3",          1},
        {"\xc3(",         1},
        {"\xe0\x80",      1},
        {"\xe0\xa0",      2},
        {"\xe2\x82",      2},
        {"\xe2\x82(",     2},
        {"\xed\xa0\x80",  1},
        {"\xed\x9f",      2},
        {"\xf0\x80\x80",  1},
        {"\xf0\x9f",      2},
        {"\xf0\x9f\x98",  3},
        {"\xf0\x9f\x98(", 3},
        {"\xf4\x90\x80",  1},
        {"\xf4\x8f\xbf",  3},
        {"\xf5\x80",      1},
        {"\xff",          1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool ok = true;

        assert_int_equal(utf8_next(cases[i].text, strlen(cases[i].text), &ok), cases[i].length);
        assert_false(ok);
    }
}

static void prefix_ends_at_the_first_fault(void **state)
{
    char text[64];

    (void)state;
    for (size_t at = 0; at < sizeof text; at++) {
        memset(text, 'a', sizeof text);
        text[at] = (char)0xff;
        assert_int_equal(utf8_valid_prefix(text, sizeof text), at);
        assert_false(utf8_is_valid(text, sizeof text));
    }
    assert_true(utf8_is_valid("", 0));
    assert_true(utf8_is_valid("\0", 1));
    assert_int_equal(utf8_valid_prefix("abc\xe2\x82", 5), 3);
}

static void truncation_never_splits(void **state)
{
    static const char text[] = "aé漢😀z"; /* 1 2 3 4 1 */
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};

    (void)state;
    for (size_t max = 0; max < ARRAY_LEN(want); max++)
        assert_int_equal(utf8_truncate(text, sizeof text - 1, max), want[max]);
}

static void a_tail_is_incomplete_only_if_it_can_continue(void **state)
{
    static const struct {
        const char *text;
        size_t tail;
    } cases[] = {
        {"",                     0},
        {"a",                    0},
        {"a\xc3",                1},
        {"\xc3\xa9",             0},
        {"\xe2",                 1},
        {"\xe2\x82",             2},
        {"\xe2\x82\xac",         0},
        {"\xf0\x9f\x98",         3},
        {"\xed\xa0",             0},
        {"\xe0\x80",             0},
        {"\x80\x80\x80",         0},
        {"\xff",                 0},
        {"\xc0",                 0},
        {"a\x80\x80",            0},
        {"\xf4\x90",             0},
        {"\xf0\x9f\x98\x80\x80", 0},
        {"\xc3\x28",             0},
        {"\xe2\x82\xc3",         1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t got = utf8_incomplete_tail(cases[i].text, strlen(cases[i].text));

        if (got != cases[i].tail)
            fail_msg("case %zu: %zu, expected %zu", i, got, cases[i].tail);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_definition),
        cmocka_unit_test(every_code_point_survives),
        cmocka_unit_test(bad_parts_are_maximal),
        cmocka_unit_test(prefix_ends_at_the_first_fault),
        cmocka_unit_test(truncation_never_splits),
        cmocka_unit_test(a_tail_is_incomplete_only_if_it_can_continue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
