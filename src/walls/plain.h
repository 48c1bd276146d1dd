/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes without isolation, for a host that is a sandbox itself: no namespace, no filter, no
 * mount, and no privilege needed. What stays is everything else that a run is promised: a clean
 * environment, limits, a directory of its own (room.h), a private result channel, and an end that
 * ends everything.
 *
 * The end, without a pid namespace: init is a subreaper, so nothing it started can leave
 * its tree by losing its parent, and killing the tree is exact (process_tree.h). A tenant may kill
 * its init, they share a user; then the tree comes to the keeper, a subreaper as well, which ends
 * it; the launcher and the guard stand behind it in the same way. As root the tenants have users of
 * their own and cannot reach any of these.
 */
#pragma once

#include "base/err.h"
#include "walls/keeper.h"

extern const struct keeper_kind keeper_plain;

enum { ROOMS_MAX = 64 };
/* A directory for the rooms of one launcher, which others may pass through but not list. */
must_check int rooms_make(char out[ROOMS_MAX], struct err *e);
