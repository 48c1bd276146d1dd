/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

enum { DAY = 86400 };

/* What libc makes of it. */
static void is_told_as_by_libc(int64_t unix_s)
{
    char ours[CLOCK_ISO_MAX], theirs[CLOCK_ISO_MAX];
    time_t t = (time_t)unix_s;
    struct tm tm;

    assert_non_null(gmtime_r(&t, &tm));
    assert_true(strftime(theirs, sizeof theirs, "%Y-%m-%dT%H:%M:%S.123456Z", &tm) > 0);
    assert_string_equal(clock_iso_at(unix_s, 123456789, ours), theirs);
}

/* Until 2110: the year 2100 is no leap year. */
static void every_day_is_told_as_by_libc(void **state)
{
    (void)state;
    for (int64_t day = -800; day < 365 * 140; day++) {
        is_told_as_by_libc(day * DAY);
        is_told_as_by_libc(day * DAY + DAY - 1);
    }
}

static void every_second_of_a_day_is_told_as_by_libc(void **state)
{
    (void)state;
    for (int64_t s = 0; s < DAY; s++)
        is_told_as_by_libc(INT64_C(1709164800) + s); /* 29 February 2024 */
}

static void a_year_that_nobody_can_name_is_1970(void **state)
{
    char out[CLOCK_ISO_MAX];

    (void)state;
    assert_string_equal(clock_iso_at(INT64_MAX, 0, out), "1970-01-01T00:00:00.000000Z");
    assert_string_equal(clock_iso_at(INT64_MIN, 0, out), "1970-01-01T00:00:00.000000Z");
}

static void a_far_year_fits(void **state)
{
    char out[CLOCK_ISO_MAX];

    (void)state;
    assert_string_equal(clock_iso_at(INT64_C(253402300800), 0, out),
                        "10000-01-01T00:00:00.000000Z");
}

static void today_is_the_beginning_of_now(void **state)
{
    char now[CLOCK_ISO_MAX], day[9], again[CLOCK_ISO_MAX];

    (void)state;
    do {
        clock_iso(now);
        clock_date8(day);
        clock_iso(again);
    } while (memcmp(now, again, 10) != 0); /* midnight */
    assert_int_equal(strlen(day), 8);
    assert_memory_equal(day, now, 4);
    assert_memory_equal(day + 4, now + 5, 2);
    assert_memory_equal(day + 6, now + 8, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_is_told_as_by_libc),
        cmocka_unit_test(every_second_of_a_day_is_told_as_by_libc),
        cmocka_unit_test(a_year_that_nobody_can_name_is_1970),
        cmocka_unit_test(a_far_year_fits),
        cmocka_unit_test(today_is_the_beginning_of_now),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
