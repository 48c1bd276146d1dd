/* SPDX-License-Identifier: MIT */
/*
 * The keeper of a slot: a process that makes one sandbox after the other.
 *
 * It lives in the slot's control groups, network namespace and template root, so
 * that its children are born there and no request pays for entering them. It
 * reads only fixed-size messages of the launcher, never a tenant's byte.
 *
 *   launcher ──PREPARE + fds──▶ keeper ──clone3──▶ sandbox (init, pid 1)
 *            ◀──STARTED + pidfd─        ◀──wait4───
 *            ◀──DEAD────────────
 *
 * Pid 1 of a sandbox is always the program sandbox-init (birth.h). It starts the first process,
 * unless the keeper is a zygote's child: then that is a copy of the keeper.
 */
#pragma once

#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "init/steps.h"
#include "walls/cgroup.h"
#include "walls/netns.h"
#include "walls/seccomp.h"
#include "walls/space.h"
#include "wire/cpus.h"
#include "wire/launch.h"

struct keeper;

/* A keeper that has a warmed interpreter in its memory, of which first processes are copies. */
struct copies {
    void *user;                 /* borrowed */
    void (*settle)(void *user); /* in the keeper, once it is in its groups and in its root */
    pid_t (*fork)(void *user);
    /* In the copy, behind the walls. */
    __attribute__((noreturn)) void (*begin)(void *user, const struct cpus *cpus, int gate);
};

/*
 * How sandboxes come to be: one row per jail. What is the same for all (groups, messages, waiting,
 * processors) is in keeper.c.
 */
struct keeper_kind {
    const char *name;
    unsigned traits;     /* enum jail_trait, without those that control groups give */
    uint64_t namespaces; /* that the first process of a sandbox is born into */
    bool rootless;       /* has a user namespace of its own where the launcher is not root */
    bool rooted;         /* lives in the template root (root.h) */
    /* The keeper is in the slot's groups; what else does it need? */
    int (*enter)(struct keeper *k, struct err *e);
    /* In the new process: becomes the sandbox's init. Never returns. */
    void (*become)(struct keeper *k, const struct launch_msg *m, const int *fds, size_t fds_n);
    /* The first process has ended. Leaves the slot as it was; -1: it must not go on, and m->err may
     * say why there never was a sandbox. */
    int (*renew)(struct keeper *k, struct launch_msg *m, int status);
};
extern const struct keeper_kind keeper_native;

/* What holds for all keepers of a launcher, also for those of its zygotes. */
struct keeper_host {
    bool rootless;
    bool inodes;      /* of its own: a slot that cannot have them is not used (apart.h) */
    bool netns_fresh; /* every network namespace is single-use */
    uid_t user;       /* whom a plain sandbox that keeps its files runs as: the daemon's */
    gid_t group;
};

struct keeper {
    const struct keeper_kind *kind; /* borrowed */
    unsigned slot;
    struct keeper_host host;
    struct space space;             /* that it enters */
    const char *rooms;              /* borrowed: directory in which plain sandboxes get theirs */
    int sock;                       /* owned: to the launcher */
    int mntns;                      /* owned: the template */
    int devices;                    /* owned: a detached mount for /dev, or -1: the template's */
    int procs[CG_CONTROLLER_COUNT]; /* owned */
    const struct filters *filters;  /* borrowed */
    int program;                    /* owned: sandbox-init, or -1: the one in the template */
    const struct copies *copies;    /* borrowed; NULL: there is nothing to copy */

    struct cpus cpus; /* what a sandbox may run on */
    unsigned made;
    pid_t pid, launcher; /* its own, and whose child it is */
    struct netns net;    /* its files are owned */
    int host_net;        /* owned: the network namespace we were born in, or -1 */
    int said[2];         /* owned: what a program that makes sandboxes for us says, or -1 */
    char *stack;         /* owned: lent with the rest (birth.h), or NULL */
    jmp_buf back;        /* into birth_clone() */
    int gate;            /* owned by a first process: readable when it may begin */
};

/* The processor that a slot's keeper stays on: which of those we may use. */
static inline unsigned keeper_cpu(unsigned slot, size_t cpus_n)
{
    return slot % (unsigned)cpus_n;
}

/* Never returns: exits when the launcher closes the socket. Failures before the first sandbox are
 * sent as LAUNCH_FAILED. */
__attribute__((noreturn)) void keeper_run(struct keeper *k);

/* What is asked for, and the descriptors that came with it; the rest is for the kind to fill in. */
struct confine keeper_confine(const struct keeper *k, const struct launch_msg *m, const int *fds,
                              size_t fds_n);
/* Ends whatever came to the keeper, which must be a reaper, and waits for it. */
void keeper_purge(void);
