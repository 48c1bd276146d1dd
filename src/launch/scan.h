/* SPDX-License-Identifier: MIT */
/*
 * Listing the workspace from inside, as the sandbox's user, after everything
 * else in it is dead. Files leave as descriptors: nothing outside ever opens a
 * path that a tenant made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    SCAN_DEPTH_MAX = 64,
    SCAN_FILES_MAX = 100000,
};

/* How many names the directory has; 0 lets the daemon skip the scan. -1 when unreadable. */
int64_t scan_entries(int dir);

/* Sends an INIT_ENTRY with a descriptor for every regular file that is not hidden (all: also for
 * those), and for links that stay inside; then INIT_SCANNED. Blocks while the daemon does not read.
 */
void scan_workspace(int dir, int ctl, bool all);
