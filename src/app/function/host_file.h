/* SPDX-License-Identifier: MIT */
/*
 * One file below a host directory: written beside its place and put there in one step, or removed.
 * No link is followed, nothing outside the directory is touched. These block: on a worker only.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "core/plan.h"

/* 0 or -errno. Directories on the way are made. */
must_check int host_file_write(int root, const char *path, struct bytes content);
/* One that is not there counts as removed. */
must_check int host_file_remove(int root, const char *path);

/* After -EACCES: would the modes of file and directory have allowed it? Then a wall around us did
 * not (base/lockdown.h): it stands around the directories that there were when we started. */
bool host_file_is_walled(int root, const char *path);

/* The empty directories that path leads through, the deepest first, but none whose path is shorter
 * than that. The first that is not empty ends it. */
void host_dirs_remove(int root, const char *path, size_t shortest);

/* A second name for a file, beside it, whatever becomes of the first; a copy only where the kernel
 * refuses that. *ret is the caller's; NULL: there is no such file. Then it goes back to its place,
 * or the second name goes. */
must_check int host_file_keep(int root, const char *path, char **ret);
must_check int host_file_restore(int root, const char *path, const char *kept);
must_check int host_file_forget(int root, const char *path, const char *kept);
