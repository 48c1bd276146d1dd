/* SPDX-License-Identifier: MIT */
/* What on this host stands in the way of isolation, and what to do about it. */
#pragma once

#include <stddef.h>

/*
 * The i-th thing that is in the way here; NULL behind the last one. Looks at settings only and
 * changes nothing. docs/operators.md has the same in prose.
 */
const char *advice_next(size_t *inout_at);
/* The same for later: bits of what is in the way now, and the words of one of them; NULL behind the
 * last. Once the daemon has confined itself it sees its own walls in place of the host's. */
unsigned advice_look(void);
const char *advice_words(size_t bit);
