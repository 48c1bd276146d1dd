/* SPDX-License-Identifier: MIT */
/* Names in a directory, without allocating. */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"

enum { ENTRIES_RAW = 16 * 1024 };

struct entries {
    int fd;     /* borrowed: read from where it is */
    long at, n; /* 0 at first */
    char raw[ENTRIES_RAW];
};

/* The next one, valid until the next call; "." and ".." are left out. NULL: the end, or
 * *ret_error is not 0. */
const char *entries_next(struct entries *e, int *ret_error);

/* How many a directory has; -1: unreadable. */
int64_t entries_count(int dir);
