/* SPDX-License-Identifier: MIT */
/*
 * Trees of files below a directory that only we write: adding one file, removing everything. Paths
 * come from tenants; no link is ever made or followed, so none can lead out. May run on a worker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/cleanup.h"

enum { TREE_DEPTH_MAX = 72 };

struct tree_file {
    int fd; /* borrowed: what to copy, from its beginning */
    uint64_t size;
    mode_t mode;
    struct timespec mtime;
};

/* Is it relative, without empty, "." and ".." parts, and not too deep? */
bool tree_path_is_safe(const char *path);
/* Copies a file to the path below root, parents made. 0 or -errno; -EINVAL: the path. */
must_check int tree_add(int root, const char *path, const struct tree_file *f);
/* Removes a file or a directory with everything in it; 0 or -errno. A path of ours, not a tenant's.
 */
must_check int tree_remove(int at, const char *name);
