/* SPDX-License-Identifier: MIT */
/* Numbers by hand: an answer may have ten thousand of them, and printf takes its time. */
#pragma once

#include <stdint.h>

enum { DIGITS_MAX = 20 }; /* of any number */

/* Writes at least so many digits that end before `end`; where they begin. */
static inline char *digits_before(char *end, uint64_t v, int at_least)
{
    for (; at_least > 0 || v > 0; at_least--, v /= 10)
        *--end = (char)('0' + v % 10);
    return end;
}
