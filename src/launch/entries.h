/* SPDX-License-Identifier: MIT */
/* Names in a directory, without allocating where that can be. */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"

enum { ENTRIES_RAW = 16 * 1024 };

struct entries {
    int fd;    /* borrowed */
    void *dir; /* owned, or NULL */
    long at, n;
    char raw[ENTRIES_RAW];
};

/* From where the descriptor is. -errno */
must_check int entries_open(struct entries *e, int fd);
/* The next one, valid until the next call; "." and ".." are left out. NULL: the end, or
 * *ret_error is not 0. */
const char *entries_next(struct entries *e, int *ret_error);
void entries_close(struct entries *e);

/* How many a directory has; -1: unreadable. */
int64_t entries_count(int dir);
