/* SPDX-License-Identifier: MIT */
/*
 * What source texts were compiled to, so that a handler that is asked for again only runs.
 * In memory, bounded in number and bytes; the least recently used go first.
 *
 * Found by the whole text, byte for byte. It is the wrapper inside that compiles, in a fresh
 * sandbox, before the first line of the text runs, and sends the result in the first frame of all.
 * Only a text that takes over the compiler can forge that frame, and the forgery is used for runs
 * of the same text alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan.h"

enum { CODES_MAX = 1024 };

struct code_cache;

/* bytes_max 0: nothing is ever kept. */
must_check int code_cache_new(size_t bytes_max, struct code_cache **ret, struct err *e);
void code_cache_free(struct code_cache *c); /* NULL is fine */

/* Borrowed until the next one is added. */
bool code_cache_find(struct code_cache *c, struct bytes code, struct bytes *ret);
bool code_cache_wants(const struct code_cache *c, struct bytes code);
/* Copies both. What does not fit is left out. */
void code_cache_add(struct code_cache *c, struct bytes code, struct bytes compiled);
