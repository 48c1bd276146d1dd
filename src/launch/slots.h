/* SPDX-License-Identifier: MIT */
/*
 * The launcher's slots: places where one sandbox at a time can live.
 *
 *      (none) ──open──▶ IDLE ──PREPARE──▶ BUSY ──DEAD, clean──▶ IDLE
 *                                           └─DEAD, anything odd─▶ closed
 *
 * A slot that saw an out-of-memory kill, kept memory charged, or whose keeper
 * failed is closed and never used again; the next one gets a fresh index.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/plan.h"
#include "launch/cgroup.h"
#include "launch/wire.h"

enum { SLOTS_MAX = 2048, PENDING_MAX = 4096 };

struct slot {
    bool open, busy, told; /* told: the daemon has its usage descriptors */
    unsigned index;        /* unique for the life of the launcher */
    enum plan_template template;
    int keeper; /* owned: socket; -1 when closed */
    int pidfd;  /* owned: pid 1 of the sandbox in it, or -1 */
    uint64_t id;
    unsigned generation; /* of the zygote behind it */
    int64_t oom_before;
    struct cgroup_slot cgroup;
};

/* A request waiting for a slot. */
struct pending {
    struct launch_msg msg;
    int fds[LAUNCH_FDS_PREPARE]; /* owned */
};
