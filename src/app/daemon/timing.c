/* SPDX-License-Identifier: MIT */
#include "app/daemon/timing.h"

#include <string.h>

#include "base/digits.h"

enum { US_PER_MS = 1000, ENTRY_MAX = TIMING_NAME_MAX + DIGITS_MAX + sizeof ", ;dur=." };

/* Milliseconds with three decimals. */
static char *put_ms(char *at, uint64_t us)
{
    char text[DIGITS_MAX + 1], *end = text + sizeof text;
    char *p = digits_before(end, us % US_PER_MS, 3);

    *--p = '.';
    p = digits_before(p, us / US_PER_MS, 1);
    memcpy(at, p, (size_t)(end - p));
    return at + (end - p);
}

void timing_print(const struct timing *t, size_t n, char out[SERVER_TIMING_MAX])
{
    char *at = out;

    for (size_t i = 0; i < n && at + ENTRY_MAX < out + SERVER_TIMING_MAX; i++) {
        at = stpcpy(at, i > 0 ? ", " : "");
        at = stpcpy(stpcpy(at, t[i].name), ";dur=");
        at = put_ms(at, t[i].us);
    }
    *at = '\0';
}
