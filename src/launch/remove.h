/* SPDX-License-Identifier: MIT */
/*
 * Removing a tree of any depth, and walking directories without allocating.
 *
 * One directory is open at a time, whatever the depth. The way back up is "..",
 * checked against what was entered: a tenant that moves directories under our
 * feet gets an error, not another tree removed.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

/* Links are removed, not followed; what is not there is no error. 0, or -errno and the path it
 * failed at (malloc, maybe NULL). Stops at the first failure. */
must_check int remove_all(const char *path, char **ret_failed);

/* Raw directory entries: bytes, 0 at the end, -1 with errno. */
long remove_getdents(int fd, char *buf, size_t n);
/* The name at *at, which advances; NULL for "." and "..". */
const char *remove_next_name(const char *buf, long *at);
