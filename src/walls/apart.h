/* SPDX-License-Identifier: MIT */
/*
 * Inodes of its own for each slot.
 *
 * Watches (inotify, dnotify) and locks (flock, fcntl) meet on inodes. The template root is one
 * tmpfs and /usr one mount of the host's: sandboxes that shared these could watch what others
 * open, and what the host opens, and talk by locks. So a keeper puts a read-only overlay over
 * each of them before its first sandbox. Files and page cache stay shared, inodes do not. One
 * sandbox at a time lives in a slot, and its watches and locks end with it.
 *
 *   template   /  tmpfs                /usr  the host's                     /mnt  empty
 *   slot       /  overlay of that      /usr  overlay over the host's, which stays below
 *
 * An overlay without an upper layer must have two lower ones: the second is the empty /mnt. It
 * costs a slot about half a millisecond once, and a sandbox nothing but three more mounts to
 * copy. What is installed on the host later may stay unseen in a slot that has looked for it;
 * slots are replaced when packages change (zygote.h).
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"

#define APART_EMPTY "/mnt" /* in the template root */

/* In a keeper that is in the template root, and in nobody else's mount namespace afterwards. 0
 * or -errno: then the slot must not be used. Without `inodes` it shares those of the template.
 * devices: a detached mount for /dev (launcher/devices.h), where an overlay of ours could have
 * none that work; or -1. */
must_check int apart_enter(bool inodes, int devices);
/* In the launcher, once: can slots of this template have inodes of their own? 1 or 0. It is 0
 * where the kernel mounts no overlay here (overlays on overlays on overlays; without root
 * before Linux 5.11); then the jail does not have the trait `inodes`. -errno: a shortage kept
 * it from finding out, so nothing may be promised or left out. */
must_check int apart_probe(int template);
