/* SPDX-License-Identifier: MIT */
/*
 * The way into a sandbox: a list of steps that a reviewer can recite. It runs
 * in the new pid 1, before that has read anything a tenant wrote. A step that
 * fails is reported by name on the control socket, and the sandbox is no more.
 */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <sys/types.h>

#include "launch/wire.h"

/* Where the daemon's five descriptors end up in pid 1; everything else is closed. */
enum {
    INIT_FD_CTL = 3,
    INIT_FD_JOB,
    INIT_FD_IN,
    INIT_FD_OUT,
    INIT_FD_ERR,
    INIT_FD_END,
    INIT_FD_DEPENDENCIES,
    INIT_FD_LAST,
};

enum { SANDBOX_UID = 1000 }; /* as seen inside */

struct confine {
    bool rootless;
    uid_t uid;                    /* on the host (root), or 0 in the launcher's user namespace */
    const struct launch_msg *msg; /* limits */
    const int *fds;               /* ctl, job, in, out, err */
    int workspace;                /* a detached mount, or -1 */
    int dependencies;             /* the same */
    int host_net;                 /* a network namespace to enter instead of ours, or -1 */
    const struct sock_fprog *filter;
};

void confine_self(const struct confine *c);
