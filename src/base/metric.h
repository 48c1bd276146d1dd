/* SPDX-License-Identifier: MIT */
/*
 * Prometheus metrics. The list is core/metrics.def; values live in one struct
 * that hangs from the app. Labels are small closed sets known at compile time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { METRIC_BUCKETS = 14 };
/* Upper bounds from 250 microseconds to 30 seconds: see metric.c. */
struct histogram {
    uint64_t bucket[METRIC_BUCKETS + 1];
    uint64_t count, sum_us;
};

void histogram_add(struct histogram *h, uint64_t us);
/* Exposition helpers; labels is "" or `a="b",c="d"`. */
void metric_head(struct buf *out, const char *name, const char *type, const char *help);
void metric_value(struct buf *out, const char *name, const char *labels, double v);
void metric_histogram(struct buf *out, const char *name, const char *labels,
                      const struct histogram *h); /* in seconds */
