/* SPDX-License-Identifier: MIT */
#include "base/metric.h"

#include <inttypes.h>
#include <math.h>

#include "base/cleanup.h"

static const uint64_t bounds_us[] = {250,   500,    1000,   2500,   5000,    10000,   25000,
                                     50000, 100000, 250000, 500000, 1000000, 5000000, 30000000};
_Static_assert(ARRAY_LEN(bounds_us) == METRIC_BUCKETS, "every bucket has a bound");

void histogram_add(struct histogram *h, uint64_t us)
{
    size_t i = 0;

    while (i < METRIC_BUCKETS && us > bounds_us[i])
        i++;
    h->bucket[i]++;
    h->count++;
    h->sum_us += us;
}

void metric_head(struct buf *out, const char *name, const char *type, const char *help)
{
    (void)buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

#define WHOLE_MAX 9007199254740992.0 /* 2^53: beyond it a double skips whole numbers */

static void put_number(struct buf *out, double v)
{
    if (isnan(v))
        (void)buf_puts(out, "NaN");
    else if (isinf(v))
        (void)buf_puts(out, v > 0 ? "+Inf" : "-Inf");
    else if (v > -WHOLE_MAX && v < WHOLE_MAX && v == (double)(int64_t)v)
        (void)buf_printf(out, "%" PRId64, (int64_t)v); /* counters read better as whole numbers */
    else
        (void)buf_printf(out, "%.9g", v);
}

void metric_value(struct buf *out, const char *name, const char *labels, double v)
{
    (void)buf_puts(out, name);
    if (*labels)
        (void)buf_printf(out, "{%s}", labels);
    (void)buf_putc(out, ' ');
    put_number(out, v);
    (void)buf_putc(out, '\n');
}

/* One bucket line: counts up to and including the bound. */
static void put_bucket(struct buf *out, const char *name, const char *labels, double le_s,
                       uint64_t count)
{
    (void)buf_printf(out, "%s_bucket{%s%sle=\"", name, labels, *labels ? "," : "");
    put_number(out, le_s);
    (void)buf_printf(out, "\"} %" PRIu64 "\n", count);
}

static void put_total(struct buf *out, const char *name, const char *suffix, const char *labels)
{
    (void)buf_printf(out, "%s_%s%s%s%s ", name, suffix, *labels ? "{" : "", labels,
                     *labels ? "}" : "");
}

void metric_histogram(struct buf *out, const char *name, const char *labels,
                      const struct histogram *h)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < METRIC_BUCKETS; i++) {
        sum += h->bucket[i];
        put_bucket(out, name, labels, (double)bounds_us[i] / 1e6, sum);
    }
    put_bucket(out, name, labels, (double)INFINITY, h->count);
    put_total(out, name, "sum", labels);
    (void)buf_printf(out, "%" PRIu64 ".%06" PRIu64 "\n", h->sum_us / 1000000, h->sum_us % 1000000);
    put_total(out, name, "count", labels);
    (void)buf_printf(out, "%" PRIu64 "\n", h->count);
}
