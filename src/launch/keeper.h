/* SPDX-License-Identifier: MIT */
/*
 * The keeper of a slot: a process that makes one sandbox after the other.
 *
 * It lives in the slot's control groups, network namespace and template root, so
 * that its children are born there and no request pays for entering them. It
 * reads only fixed-size messages of the launcher, never a tenant's byte.
 *
 *   launcher ──PREPARE + fds──▶ keeper ──clone3──▶ sandbox (init, pid 1)
 *            ◀──STARTED + pidfd─        ◀──wait4───
 *            ◀──DEAD────────────
 *
 * Whose child runs inside is the host's business: the launcher's own keepers
 * exec programs, a zygote's keepers carry a warmed interpreter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "launch/cgroup.h"
#include "launch/init.h"
#include "launch/seccomp.h"

struct keeper {
    unsigned slot;
    bool rootless;
    bool netns_fresh; /* every network namespace is single-use */
    uid_t uid_first;  /* of the UIDS_PER_SLOT host users that sandboxes of this slot get in turn */
    int sock;         /* owned: to the launcher */
    int mntns;        /* owned: the template */
    int procs[CG_CONTROLLER_COUNT]; /* owned */
    const struct filters *filters;  /* borrowed */
    const struct init_host *host;   /* borrowed */
};

enum { UIDS_PER_SLOT = 64 };

/* Never returns: exits when the launcher closes the socket. Failures before the first sandbox are
 * sent as LAUNCH_FAILED. */
__attribute__((noreturn)) void keeper_run(struct keeper *k);
