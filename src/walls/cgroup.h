/* SPDX-License-Identifier: MIT */
/*
 * Control groups, version 1 or 2, for slots.
 *
 * Making a group and moving a process into it costs up to a grace period of the
 * kernel (5 to 20 ms on an idle machine), so it is never done for a request.
 * Each slot has groups of its own for life; its keeper lives in them and every
 * sandbox it makes is born there. Limits are rewritten only when they change.
 *
 *   <ours in each hierarchy>/sandbox-executor.<pid>/s<slot>
 *
 * Version 2 forbids processes beside controllers, so the daemon and the
 * launcher first move to the leaf "main".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

enum cgroup_controller {
    CG_MEMORY,
    CG_PIDS,
    CG_CPU,
    CG_CPUACCT,
    CG_FREEZER, /* version 2 has it in every group */
    CG_CONTROLLER_COUNT,
};
enum cgroup_usage {
    CG_USED_CPU,
    CG_USED_MEMORY,
    CG_USED_OOM,
    CG_USED_PIDS,
    CG_USED_ALIVE,
    CG_USED_PROCESSES,
    CG_USAGE_COUNT,
};

/* Where our groups are. Version 2 has one directory, standing for all controllers. */
struct cgroups {
    int version;                  /* 0: none usable; `why` says why not */
    int dir[CG_CONTROLLER_COUNT]; /* owned; -1 where the controller is missing */
    int up[CG_CONTROLLER_COUNT];  /* owned: the parents, to remove ours at the end */
    char name[48];                /* our directory in them */
    char why[128];
};

struct cgroup_slot {
    unsigned index;
    int procs[CG_CONTROLLER_COUNT]; /* owned: cgroup.procs, for the keeper to enter */
    int usage[CG_USAGE_COUNT];      /* owned: what the daemon may read */
    uint64_t memory_max;            /* as last written */
    uint32_t pids_max;
    uint64_t baseline; /* memory charged while no sandbox is there */
};

/* Finds and makes our groups, moving the caller and `daemon` where version 2 needs it. Never
 * fails: version is 0 when there is nothing to use. Call before entering a pid namespace. */
void cgroups_open(struct cgroups *ret, pid_t daemon);
bool cgroups_has(const struct cgroups *c, enum cgroup_controller k);
/* Removes our groups, as far as they are empty. */
void cgroups_close(struct cgroups *c);

/* freezes: sandboxes in it are to be paused (version 1 has another hierarchy for that). */
must_check int cgroup_slot_open(const struct cgroups *c, unsigned index, bool freezes,
                                struct cgroup_slot *ret, struct err *e);
/* No process in it gets any processor time, or they go on. 0 or -errno. */
must_check int cgroup_slot_freeze(const struct cgroups *c, unsigned index, bool frozen);
/* Lets all slots go on. Processes that version 1 has frozen cannot even die. */
void cgroups_thaw(const struct cgroups *c);
void cgroup_slot_close(struct cgroup_slot *s);
/* False while a process is left in it. */
bool cgroup_slot_remove(const struct cgroups *c, unsigned index);
bool cgroup_slot_is_gone(const struct cgroups *c, unsigned index);
/*
 * Frees what the kernel keeps for a group without processes if that is much: names that were looked
 * up, found or not, above all. Once the group is removed nobody is charged for it. Takes as long as
 * there is to free; a signal ends it. False: processes are left, and nothing was freed.
 */
bool cgroup_slot_reclaim(const struct cgroups *c, unsigned index);
must_check int cgroup_slot_limit(const struct cgroups *c, struct cgroup_slot *s,
                                 uint64_t memory_max, uint32_t pids_max, struct err *e);
/* Ready for the next sandbox? Resets the peak. False: something of the last one stayed. */
bool cgroup_slot_clean(const struct cgroups *c, struct cgroup_slot *s);

/* The calling process enters; 0 or -errno. */
must_check int cgroup_enter(const int procs[CG_CONTROLLER_COUNT]);
