/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes without isolation, for a host that is a sandbox itself: no namespace, no filter, no
 * mount, and no privilege needed. What stays is everything else that a run is promised: a clean
 * environment, limits, a directory of its own (room.h), a private result channel, and an end that
 * ends everything.
 *
 * The end, without a pid namespace, on Linux: init is a subreaper, so nothing it started can leave
 * its tree by losing its parent, and killing the tree is exact (tree.h). A tenant may kill its
 * init, they share a user; then the tree comes to the keeper, a subreaper as well, which ends it;
 * the launcher and the guard stand behind it in the same way. As root the tenants have users of
 * their own and cannot reach any of these. Elsewhere: launcher_posix.c.
 */
#pragma once

#include "launch/init.h"
#include "launch/room.h"
#include "launch/wire.h"

struct plain {
    bool rootless;
    bool seatbelt; /* macOS's sandbox goes around every program (seatbelt.h) */
    bool own_user; /* nobody else has it */
    uid_t uid;
    gid_t gid;
    init_runner_fn *run;     /* of the first process */
    const struct cpus *cpus; /* borrowed: where it may run */
    int leash;               /* struct init; -1: none */
    char room[ROOM_PATH_MAX];
};

/* In a new process: becomes init of a sandbox. workspace: a directory, or -1. */
__attribute__((noreturn)) void plain_run(const struct plain *p, const struct launch_msg *m,
                                         const int *fds, int workspace);

enum { ROOMS_MAX = 64 };
/* A directory for the rooms of one launcher, which others may pass through but not list. */
must_check int rooms_make(char out[ROOMS_MAX], struct err *e);
