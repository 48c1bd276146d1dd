/* SPDX-License-Identifier: MIT */
/*
 * Host users of sandboxes, shared out between all launchers of a host.
 *
 *   USERS_FIRST    range 0: users of slots, then users of kept workspaces
 *                  range 1: ...
 *
 * A user is a boundary (files, signals) and an account (inotify, pipes, pending signals), so
 * two sandboxes that live at the same time must not have the same one, whichever daemon made
 * them. A range is ours while we hold a lock on its file. The kernel gives the lock back when
 * the last process that inherited it has ended, also when all of them were killed.
 *
 * Kept workspaces stay, and their owner is the record of their user. So a launcher begins with
 * the range in which its workspaces are. One that another launcher holds meanwhile is not
 * lost: its workspaces are refused until that launcher ends, unless both belong to the same
 * daemon. Sandboxes of one session share its workspace, and so its user.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

enum {
    USERS_RANGES = 256,
    USERS_OF_SLOTS = 1 << 17, /* of a range, the first */
    USERS_KEPT = 1 << 20,     /* and behind them */
    USERS_PER_RANGE = 1 << 21,
    USERS_OWNER_MAX = 64,
};

struct users {
    uid_t first;                 /* of range 0 */
    int dir;                     /* owned: of the files that are locked */
    int lock[USERS_RANGES];      /* owned: those we hold, else -1 */
    char owner[USERS_OWNER_MAX]; /* our daemon, as the files of its launchers name it */
    unsigned range;              /* ours */
    bool used[USERS_RANGES];     /* of other ranges: users of kept workspaces that we found there */
    unsigned used_n;             /* so many, and one for the stranger */
    uid_t stranger;              /* an ordinary user of the host who owns a workspace; 0: none */
};

/* Takes the range `wanted`, if it is needed and free; else the one that was taken longest ago, the
 * first from `wanted` on: so a daemon that is started again finds the range of its workspaces free.
 * It is ours for as long as we and our children live. */
must_check int users_claim(struct users *u, uid_t first, unsigned wanted, bool needed,
                           struct err *e);
/* Of our range. */
uid_t users_slots(const struct users *u);
uid_t users_kept(const struct users *u);
/* Behind both: of zygotes, one for each template. */
uid_t users_zygotes(const struct users *u);
/* All users that sandboxes of ours may get, as lines of uid_map that map them to themselves.
 * Grows with used_n. -ENOSPC: there are too many ranges. */
must_check int users_map(const struct users *u, char *ret, size_t max);
/* Sandboxes of ours may get that user of the host, who is none of a range. */
void users_add_stranger(struct users *u, uid_t uid);
/* Is it a user of kept workspaces, of any range? */
bool users_is_kept(const struct users *u, uid_t uid);
unsigned users_range_of(const struct users *u, uid_t uid);
/* May a sandbox of ours run as that user of kept workspaces now? Takes its range, if it is free,
 * and notes it as used. */
bool users_may_use(struct users *u, uid_t uid);
