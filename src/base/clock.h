/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t clock_us(void); /* monotonic */
enum { CLOCK_ISO_MAX = 40 };
/* ISO 8601, UTC, microseconds, "Z". Returns out. */
const char *clock_iso(char out[CLOCK_ISO_MAX]);
const char *clock_iso_at(int64_t unix_s, int64_t ns, char out[CLOCK_ISO_MAX]);
void clock_date8(char out[9]); /* YYYYMMDD, UTC */
