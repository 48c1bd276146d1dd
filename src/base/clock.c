/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

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

/* A file may carry any time stamp its owner liked; a year beyond int says 1970. */
static struct tm utc(int64_t unix_s)
{
    struct tm tm;

    return gmtime_r(&(time_t){unix_s}, &tm) ? tm : (struct tm){.tm_year = 70, .tm_mday = 1};
}

const char *clock_iso_at(int64_t unix_s, int64_t ns, char out[CLOCK_ISO_MAX])
{
    struct tm tm = utc(unix_s);
    size_t n = strftime(out, CLOCK_ISO_MAX, "%Y-%m-%dT%H:%M:%S", &tm);

    (void)snprintf(out + n, CLOCK_ISO_MAX - n, ".%06uZ", (unsigned)(ns / 1000) % 1000000u);
    return out;
}

void clock_date8(char out[9])
{
    struct tm tm = utc(time(NULL));

    (void)strftime(out, 9, "%Y%m%d", &tm);
}
