/* SPDX-License-Identifier: MIT */
/* What the daemon and the launcher say to each other (PROTOCOL), and the launcher to keepers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "core/plan_parts.h"

enum launch_verb {
    /* daemon to launcher */
    LAUNCH_PREPARE = 1, /* build a sandbox; fds: ctl, job, in, out, err (the child's ends) */
    LAUNCH_KILL,        /* kill sandbox `id` at once */
    LAUNCH_MEASURE,     /* how large is the kept `workspace`? fd: takes a struct launch_measured;
                           not 0: the walk stops beyond workspace_max or workspace_files */
    LAUNCH_DISCARD,     /* remove the kept `workspace`; fd: takes a struct launch_measured */

    LAUNCH_FREEZE, /* sandbox `id`, a persistent one, gets no processor time, */
    LAUNCH_THAW,   /* or goes on */

    /* launcher to daemon */
    LAUNCH_HELLO,   /* first message, and again after a restart: traits this host gives */
    LAUNCH_STARTED, /* sandbox `id` runs in `slot`; fds when the slot is new: cpu, memory, oom, pids
                     */
    LAUNCH_FAILED,  /* sandbox `id` was not made; text says why */
    LAUNCH_DEAD,    /* sandbox `id` is gone and its slot is clean or retired */
    LAUNCH_VERB_COUNT,
};

enum {
    LAUNCH_PERSISTENT = 1,   /* PREPARE: no first process, lives until released */
    LAUNCH_WATCH_MEMORY = 2, /* PREPARE: no memory controller here; init watches instead */
    LAUNCH_CGROUP2 = 4,      /* STARTED: usage files are those of version 2 */
    LAUNCH_RETIRED = 8,      /* DEAD: the slot is closed, its usage files are void */
    LAUNCH_HOST_NET = 16,    /* PREPARE: the host's network instead of one of its own */
    LAUNCH_FREEZES = 32,     /* HELLO: FREEZE is understood */
    LAUNCH_LAZY = 64, /* HELLO: host directories can be lent (lazy.h); else `dirs` says why */
};                    /* flags */

enum {
    LAUNCH_FDS_PREPARE = 5,
    LAUNCH_FDS_STARTED = 6,
    LAUNCH_WORKSPACE_MAX = 136,
    LAUNCH_DIRS_MAX = 256,
    LAUNCH_DEPENDENCIES_MAX = 152,
    /* launcher to keeper: workspace, dependencies, a socket for what is lent; those that there are
     */
    LAUNCH_FDS_KEEPER = LAUNCH_FDS_PREPARE + 3,
    LAUNCH_LAZY_MAX = PLAN_LAZY_MAX,
    LAUNCH_FDS_MAX = LAUNCH_FDS_PREPARE + LAUNCH_LAZY_MAX + 1,
};

struct launch_msg {
    uint32_t verb;
    uint32_t template;
    uint64_t id;
    uint64_t memory_max, workspace_max, workspace_files, tmp_max;
    uint32_t pids_max, slot;
    uint32_t traits, templates; /* HELLO: enum jail_trait; which templates can be warmed */
    int32_t status;             /* DEAD: wait status of init */
    uint32_t flags;
    uint32_t uid;    /* launcher to keeper: the host user of the sandbox; rootless: 0 */
    uint32_t lazy_n; /* PREPARE: host directories that are lent; fds: one of each, then the list */
    char workspace[LAUNCH_WORKSPACE_MAX]; /* "": fresh tmpfs; else a name below the workspace root,
                                             or PLAN_WORKSPACE_OWN */
    char dirs[LAUNCH_DIRS_MAX];           /* "app/data": more writable directories; "": none */
    char dependencies[LAUNCH_DEPENDENCIES_MAX]; /* "owner/3" below their root; "": none */
    struct err err;                             /* FAILED */
};

/* The answer to MEASURE and DISCARD. No answer at all: a walk took too long. */
struct launch_measured {
    uint64_t bytes, files; /* of the workspace; one that is not there has none */
    uint64_t room, total;  /* bytes of the file system it is on; 0: not known */
    int32_t error;         /* errno: not everything was seen or removed; EAGAIN: too many at once */
    uint16_t too_deep;     /* directories in each other beyond what is walked */
    uint16_t gone;         /* there is no workspace of that name, or no longer */
};

/* How many come with a PREPARE from the daemon. */
static inline size_t launch_fds(const struct launch_msg *m)
{
    return LAUNCH_FDS_PREPARE + (m->lazy_n > 0 ? (size_t)m->lazy_n + 1 : 0);
}

/* Is there more than /workspace that can be written, and one tree of it all? */
static inline bool launch_has_tree(const struct launch_msg *m)
{
    return m->dirs[0] || m->lazy_n > 0;
}
