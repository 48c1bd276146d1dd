/* SPDX-License-Identifier: MIT */
/*
 * Port: keeps copies of files that a run left behind, out of reach of any tenant.
 *
 * Copies are known by number, never by a name that somebody inside a sandbox chose.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { STORE_HEX_MAX = 65 }; /* SHA-256 in hexadecimal and a NUL */

struct store;

/* What became of one file. */
struct stored {
    uint64_t number; /* 0: not kept */
    int sys;         /* a copy was wanted and failed: errno; 0 otherwise */
    uint64_t size;
    char sha256[STORE_HEX_MAX]; /* "" when it could not be read */
};

typedef void store_kept_fn(void *user, const struct stored *s);

/*
 * Hashes and, if asked, copies the first `size` bytes of a file on a worker, then calls fn on the
 * loop. The descriptor is taken, also on failure. `owner`: the same for all files of one request,
 * which take turns with those of others.
 */
must_check int store_keep(struct store *s, int fd, uint64_t size, bool copy, const void *owner,
                          store_kept_fn *fn, void *user);
/* Opens a copy for reading: a descriptor, or -1. */
must_check int store_read(struct store *s, uint64_t number, struct err *e);
/* Has the last copy failed, and is there still no room for another? For those who watch over it. */
bool store_is_full(struct store *s);
/* Forgets a copy. Readers that already have a descriptor keep it. */
void store_drop(struct store *s, uint64_t number);
/* Is there such a copy, from before the start? */
bool store_has(struct store *s, uint64_t number);
/* Removes all copies but these, of which some may be 0. Once, before anything is kept; sorts them.
 */
void store_sweep(struct store *s, uint64_t *numbers, size_t n);
