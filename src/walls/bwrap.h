/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes made by bubblewrap: an implementation of the walls that is not ours.
 *
 *   keeper ──clone, own mounts──▶ child ──mounts what is private, drops its user──▶
 *     bwrap: user, pid, ipc, uts, network, cgroup and mount namespaces, new root, capabilities,
 *     filter ──exec──▶ sandbox-init, pid 1
 *
 * The child stands in the template root (root.h) and mounts into a copy of it what a sandbox has of
 * its own, as the native jail does: a workspace with limits of bytes and of files, and the layers
 * of a persistent one, none of which bubblewrap 0.8 can make. Then it is nobody in particular, with
 * no privilege and no environment, and executes bwrap, which takes that root as it is.
 *
 * bwrap waits outside and dies with the sandbox, and the other way round; the keeper is a reaper
 * and waits for both.
 */
#pragma once

#include "init/order.h"
#include "walls/keeper.h"

#define BWRAP_PATH "/usr/bin/bwrap"

/* What bwrap finds open besides the usual descriptors and the order (order.h). */
enum { BWRAP_FD_FILTERS = INIT_FD_PROGRAM + 1 };

extern const struct keeper_kind keeper_bwrap;
