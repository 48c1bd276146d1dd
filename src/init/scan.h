/* SPDX-License-Identifier: MIT */
/*
 * Listing the workspace from inside, as the sandbox's user, after everything
 * else in it is dead. Files leave as descriptors: nothing outside ever opens a
 * path that a tenant made.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
    SCAN_DEPTH_MAX = 64,
    SCAN_FILES_MAX = 100000,
};

/* How many names the directory has; 0 lets the daemon skip the scan. -1 when unreadable. */
int64_t scan_entries(int dir);

/* Sends an INIT_ENTRY with a descriptor for every regular file that is not hidden (all: also for
 * those), and for links that stay inside; then INIT_SCANNED. Blocks while the daemon does not read.
 */
/* Directories as they were: so that one that was moved, whose files know nothing of it, is told
 * from one in its place. */
struct scan_dirs {
    struct scan_dir {
        uint64_t inode, path; /* the path's hash */
    } * v;                    /* owned, sorted */
    size_t n, cap;
};
/* Notes all directories below; what there is no memory for counts as moved. */
void scan_note(int dir, struct scan_dirs *ret);

/* Files that are older and in their place were lent and are told without a descriptor, which is not
 * made, either. Zero: there are none. */
struct scan_birth {
    struct timespec at;
    int64_t lead_us; /* clock_lead_us() then */
};
struct scan_birth scan_birth_now(void);

struct scan_order {
    int dir, ctl;
    bool all; /* hidden files, too */
    struct scan_birth born;
    const struct scan_dirs *dirs; /* as they were then */
};
void scan_workspace(const struct scan_order *o);
