/* SPDX-License-Identifier: MIT */
/* Latencies of one measurement: collected, sorted, printed as one line of JSON. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sample {
    uint64_t *ns; /* owned */
    size_t n, max;
    uint64_t failed;
    uint64_t began, ended; /* monotonic ns */
};

uint64_t now_ns(void);
/* Aborts without memory: a benchmark that cannot count is of no use. */
void sample_init(struct sample *s, size_t max);
void sample_done(struct sample *s);
void sample_add(struct sample *s, uint64_t ns);
/* cpu_ns: what the measured side used, or negative when somebody else counts it. */
void sample_print(struct sample *s, int64_t cpu_ns);
