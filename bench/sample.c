/* SPDX-License-Identifier: MIT */
#include "sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { NS_PER_US = 1000 };
static const double ns_per_s = 1e9, us_per_ms = 1e3;

uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sample_init(struct sample *s, size_t max)
{
    *s = (struct sample){.ns = calloc(max ? max : 1, sizeof *s->ns), .max = max};
    if (!s->ns)
        abort();
}

void sample_done(struct sample *s)
{
    free(s->ns);
    *s = (struct sample){0};
}

void sample_add(struct sample *s, uint64_t ns)
{
    if (s->n < s->max)
        s->ns[s->n++] = ns;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* In microseconds; nearest rank. */
static uint64_t percentile(const struct sample *s, unsigned per_thousand)
{
    size_t rank = s->n * per_thousand / 1000;

    return s->n == 0 ? 0 : s->ns[rank < s->n ? rank : s->n - 1] / NS_PER_US;
}

static double own_cpu_ms(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * us_per_ms +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / us_per_ms;
}

void sample_print(struct sample *s, int64_t cpu_ns)
{
    double wall = (double)(s->ended - s->began) / ns_per_s;

    qsort(s->ns, s->n, sizeof *s->ns, by_value);
    (void)printf("{\"count\":%zu,\"failed\":%" PRIu64 ",\"min_us\":%" PRIu64 ",\"p50_us\":%" PRIu64
                 ",\"p95_us\":%" PRIu64 ",\"p99_us\":%" PRIu64 ",\"max_us\":%" PRIu64
                 ",\"wall_s\":%.4f,\"per_second\":%.2f,\"own_cpu_ms\":%.2f",
                 s->n, s->failed, percentile(s, 0), percentile(s, 500), percentile(s, 950),
                 percentile(s, 990), percentile(s, 1000), wall, wall > 0 ? (double)s->n / wall : 0,
                 own_cpu_ms());
    if (cpu_ns >= 0 && s->n > 0)
        (void)printf(",\"cpu_ms_per_run\":%.4f", (double)cpu_ns / 1e6 / (double)s->n);
    (void)printf("}\n");
}
