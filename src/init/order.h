/* SPDX-License-Identifier: MIT */
/*
 * What the program sandbox-init is told when it becomes pid 1 of a sandbox: by every keeper, of
 * whatever jail. A zygote's has forked the first process already (walls/birth.h); the others let
 * sandbox-init start it.
 */
#pragma once

#include <sys/types.h>

#include "init/room.h"
#include "init/steps.h"
#include "wire/cpus.h"
#include "wire/launch.h"

#define ROOT_PROGRAMS "/opt/sandbox-executor/bin" /* ours, in the template root */
#define INIT_PROGRAM  ROOT_PROGRAMS "/sandbox-init"

enum { INIT_FD_GATE = INIT_FD_DEPENDENCIES }; /* free again once that is mounted */

struct init_order {
    struct launch_msg msg;
    struct cpus cpus;
    pid_t first;              /* 0: none yet */
    bool walled;              /* the keeper took all steps: limits are set, nothing was said */
    bool accounted, shared;   /* see init.h */
    bool tree;                /* INIT_FD_END is what to scan */
    char room[ROOM_PATH_MAX]; /* of a plain sandbox; else "" */
};
