/* SPDX-License-Identifier: MIT */
/* Parameters by which sandboxes are found. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/sandbox/sandboxes.h"

/* Decodes percent signs and '+' in place, once. */
bool query_decode(char *text);
/* "a=1&b=x%20y" to pairs; cuts the text to pieces, which they point to. False: it is none, or more
 * than PERSISTENT_PAIRS_MAX. */
bool query_pairs(char *text, struct exec_var *out, size_t *ret_n);
/* "running,paused" to a set of BIT(enum persistent_state). */
bool query_states(const char *text, unsigned *ret);
/* Decimal, from least to most. */
bool query_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret);
