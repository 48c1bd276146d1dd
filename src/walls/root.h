/* SPDX-License-Identifier: MIT */
/*
 * The root directory of ephemeral sandboxes, built once.
 *
 * A template mount namespace holds a read-only tmpfs with the host's /usr, a
 * synthetic /etc, /dev and empty mount points. Keepers enter it; a sandbox is a
 * copy of it (clone with CLONE_NEWNS) plus its own /workspace, /tmp, /dev/shm,
 * /dev/pts and /proc. So no request pays for pivot_root, binds or umounts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Builds the template in a child and returns a descriptor of its mount namespace. `programs` is the
 * directory of the host from which those of ours come that are of use inside, or -1. */
must_check int root_template(bool rootless, int programs, int *ret_mntns, struct err *e);

/* In a directory: the devices of every sandbox, as root of the host. 0 or -errno. */
must_check int root_make_devices(int dir);

/* What a sandbox adds; called in the sandbox, as root of the mount namespace. */
struct root_private {
    uid_t uid; /* owner of the workspace, as seen by the mounter */
    uint64_t workspace_max, workspace_files, tmp_max;
    int workspace;    /* a detached mount to use as /workspace, or -1: a fresh tmpfs */
    int dependencies; /* another, for PLAN_DEPENDENCIES, or -1: nothing is there */
    bool lent;        /* the workspace has the directories already */
};
/* The fresh one alone. */
must_check int root_mount_workspace(const struct root_private *p);
must_check int root_mount_private(const struct root_private *p, const char **ret_step);
