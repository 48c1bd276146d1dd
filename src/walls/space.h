/* SPDX-License-Identifier: MIT */
/*
 * Where a zygote lives when the launcher is root of the host, and a keeper of the launcher whose
 * sandboxes need no root of the host: in a user namespace of its own, with no privilege over the
 * host.
 *
 * Its root is a host user that owns nothing. Mapped beside it, to themselves, are the host
 * users that its sandboxes may get. So a keeper may make namespaces, mount what a user
 * namespace may, and switch to these users, and an interpreter that is taken over has nothing
 * of the host's. What needs the host's root is made by the launcher and handed over: groups (as
 * open files), devices and lent directories (as detached mounts).
 *
 * The template root is a mount namespace of the host's root. What is copied from there into a
 * less privileged namespace is locked and could not be moved into a slot's root, so its mounts
 * are cloned before, detached, and attached in the new namespace.
 */
#pragma once

#include <sys/types.h>

#include "base/cleanup.h"

enum { SPACE_MAP_MAX = 3600 }; /* the kernel takes less than a page */

struct space {
    uid_t uid;       /* of the host: its root */
    uid_t owner;     /* of the host: charged for what the kernel counts for users in there */
    const char *map; /* borrowed: further lines of uid_map and gid_map; NULL: no space */
    int more;        /* namespaces beside those of users and mounts, as unshare() has them */
};
/* From the template root into it. 0 or -errno. */
must_check int space_enter(int template, const struct space *s);
