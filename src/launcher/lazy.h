/* SPDX-License-Identifier: MIT */
/*
 * Host directories that are lent to a sandbox: its files are there at once, and the bytes of one
 * are read when a program opens it.
 *
 * Theory of operation
 *
 * The daemon has listed what may be seen and hands over names and sizes, no contents. In the
 * sandbox's own tmpfs each becomes a stub: an empty file of the right size, owner and mode, marked
 * for overlayfs as one whose metadata alone was copied up (metacopy) and whose data is the host's
 * file at a path (redirect). An overlay of these stubs over the host's directory is what a program
 * sees: reading goes to the host's file, the first write copies it, removing and renaming concern
 * the stub. So rules, limits and links are settled by the list, and what is not on it has no name:
 * neither a hidden file nor one that appears later.
 *
 *     host directory ──clone: read-only, nosuid, nodev──▶ overlay of nothing but that,
 *                                                         mounted as the daemon's user
 *                                                                   │ lower
 *     tmpfs/.lazy/0/u/t, opaque: stubs, and all that is written ────┴▶ overlay, mounted as root:
 *                                              upper                   its "t" is the mount
 *
 * Only the directory "t" is mounted, which is opaque: the lower layer has no names of its own
 * there. The marks are trusted.* attributes, which need the host's root; nobody inside can set
 * them, and without them (rootless) there is no lending.
 *
 * An overlay opens what is below it with the rights of the process that mounted it. For the upper
 * one that must be root. So there is another in between, mounted with the daemon's user and group
 * and without root's power over files: what the daemon could not read itself, the host's kernel
 * does not read for it, whatever became of a name since it was listed.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct lazy {
    int list;
    const int *lower; /* borrowed: n detached mounts */
    size_t n;
    uid_t uid;
    uid_t user; /* whom files are read for: the daemon's; 0: root, who may read everything */
    gid_t group;
};
/* In the mount namespace of the sandbox, its tmpfs at /workspace and `tree`; /mnt is free. 0 or
 * -errno. */
must_check int lazy_mount(const struct lazy *z, int tree);

/* Makes one in a copy of a mount namespace and reads a file through it: 0, or -errno where this
 * kernel cannot. */
must_check int lazy_probe(int template, uid_t user, gid_t group);
