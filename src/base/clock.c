/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/digits.h"

uint64_t clock_us(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

uint64_t clock_thread_us(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

int64_t clock_lead_us(void)
{
    struct timespec wall = {0};

    (void)clock_gettime(CLOCK_REALTIME, &wall);
    return wall.tv_sec * INT64_C(1000000) + wall.tv_nsec / 1000 - (int64_t)clock_us();
}

const char *clock_iso(char out[CLOCK_ISO_MAX])
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return clock_iso_at(t.tv_sec, t.tv_nsec, out);
}

/* ---- dates, by hand: those of libc ask for time zones and locales, at every request ---- */

enum {
    DAY_S = 86400,
    SINCE_1968 = 731, /* days until 1970; that year is the first of four, and a leap year */
    FOUR_YEARS = 1461,
    LEAP_YEAR = 366,
    YEARS_END = 2100, /* which is no leap year */
};

struct date {
    unsigned year, month, day;
};

/* True: it is one of which this holds. */
static bool date_of(int64_t unix_s, struct date *ret)
{
    static const unsigned short before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    unsigned days, rest, leap, month = 12;

    if (unix_s < 0 || unix_s / DAY_S >= (YEARS_END - 1968) / 4 * FOUR_YEARS - SINCE_1968)
        return false;
    days = (unsigned)(unix_s / DAY_S) + SINCE_1968;
    rest = days % FOUR_YEARS;
    leap = rest < LEAP_YEAR;
    ret->year = 1968 + days / FOUR_YEARS * 4 + (leap ? 0 : 1 + (rest - LEAP_YEAR) / 365);
    rest = leap ? rest : (rest - LEAP_YEAR) % 365;
    while (rest < before[month - 1] + (month > 2 ? leap : 0))
        month--;
    ret->month = month;
    ret->day = rest - before[month - 1] - (month > 2 ? leap : 0) + 1;
    return true;
}

static char *put_digits(char *out, unsigned v, int n)
{
    (void)digits_before(out + n, v, n);
    return out + n;
}

static char *put_date(char *out, const struct date *d, const char *between)
{
    out = stpcpy(put_digits(out, d->year, 4), between);
    out = stpcpy(put_digits(out, d->month, 2), between);
    return put_digits(out, d->day, 2);
}

/* A file may carry any time stamp its owner liked; a year beyond int says 1970. */
static size_t put_other(int64_t unix_s, char out[CLOCK_ISO_MAX])
{
    time_t t = (time_t)unix_s;
    struct tm tm = {0};

    if (!gmtime_r(&t, &tm))
        tm = (struct tm){.tm_year = 70, .tm_mday = 1};
    return strftime(out, CLOCK_ISO_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
}

static size_t put_second(int64_t unix_s, char out[CLOCK_ISO_MAX])
{
    unsigned s = (unsigned)(unix_s % DAY_S);
    struct date d;
    char *at;

    if (!date_of(unix_s, &d))
        return put_other(unix_s, out);
    at = stpcpy(put_date(out, &d, "-"), "T");
    at = stpcpy(put_digits(at, s / 3600, 2), ":");
    at = stpcpy(put_digits(at, s / 60 % 60, 2), ":");
    return (size_t)(put_digits(at, s % 60, 2) - out);
}

const char *clock_iso_at(int64_t unix_s, int64_t ns, char out[CLOCK_ISO_MAX])
{
    char *at = stpcpy(out + put_second(unix_s, out), ".");

    (void)stpcpy(put_digits(at, (unsigned)(ns / 1000) % 1000000u, 6), "Z");
    return out;
}

void clock_date8(char out[9])
{
    struct date d = {1970, 1, 1};

    (void)date_of(time(NULL), &d);
    *put_date(out, &d, "") = '\0';
}
