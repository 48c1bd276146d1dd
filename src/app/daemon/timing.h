/* SPDX-License-Identifier: MIT */
/* How long the parts of something took, as the value of a Server-Timing header. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TIMING_NAME_MAX = 16, SERVER_TIMING_MAX = 256 };

struct timing {
    const char *name; /* static, of at most TIMING_NAME_MAX characters */
    uint64_t us;
};

/* Between two stamps; 0 where one of them was never set. */
static inline uint64_t timing_span(uint64_t from, uint64_t to)
{
    return from != 0 && to > from ? to - from : 0;
}

/* The same in milliseconds. */
static inline double timing_ms(uint64_t from, uint64_t to)
{
    return (double)timing_span(from, to) / 1000;
}

/* What does not fit is left out. */
void timing_print(const struct timing *t, size_t n, char out[SERVER_TIMING_MAX]);
