/* SPDX-License-Identifier: MIT */
/*
 * The launcher where there is nothing of Linux: one process that forks an init for each PREPARE
 * (plain.h), and knows it by its pid.
 *
 *   daemon ──fd 3──▶ launcher ──fork──▶ init ──▶ program
 *                       │                 ◀──leash: a pipe that ends with the launcher
 *                       └──fork──▶ undertaker: once init is dead, whatever it left, and its room
 *
 * There are no slots, no usage files and no walls: it declares no trait. A sandbox that keeps no
 * files has, as root, a user that nobody else has; so its end is complete, whatever it did
 * (tree_posix.c). Whose user is shared may have left the tree unseen.
 */
#pragma once

#include "launch/kept.h"
#include "launch/plain.h"

enum { PLACES_MAX = 2048 };

struct place {
    uint64_t id; /* 0: free */
    pid_t init, undertaker;
    bool own_user, retired; /* retired: something of its user would not die */
    int status;             /* of init */
    unsigned made;          /* number of its room */
};

struct launcher {
    int daemon;   /* owned */
    int children; /* owned: readable when one of ours has died */
    int leash[2]; /* owned: what inits hold, and what we do */
    bool rootless, seatbelt, ending;
    uid_t uid_base, user;
    gid_t group;
    char rooms[ROOMS_MAX];
    struct kept kept;
    unsigned made;
    struct place place[PLACES_MAX];
    size_t n; /* highest used + 1 */
};
