/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t clock_us(void);        /* monotonic */
uint64_t clock_thread_us(void); /* processor time that the calling thread has used */
/* How far the clock on the wall is ahead of that one. It is another number only when somebody has
 * set the clock: correcting its speed moves both. */
int64_t clock_lead_us(void);
enum { CLOCK_ISO_MAX = 40 };
/* ISO 8601, UTC, microseconds, "Z". Returns out. */
const char *clock_iso(char out[CLOCK_ISO_MAX]);
const char *clock_iso_at(int64_t unix_s, int64_t ns, char out[CLOCK_ISO_MAX]);
void clock_date8(char out[9]); /* YYYYMMDD, UTC */
