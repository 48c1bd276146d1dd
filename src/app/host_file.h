/* SPDX-License-Identifier: MIT */
/*
 * One file below a host directory: written beside its place and put there in one step, or removed.
 * No link is followed, nothing outside the directory is touched. These block: on a worker only.
 */
#pragma once

#include "base/cleanup.h"
#include "core/plan.h"

/* 0 or -errno. Directories on the way are made. */
must_check int host_file_write(int root, const char *path, struct bytes content);
/* One that is not there counts as removed. */
must_check int host_file_remove(int root, const char *path);
