/* SPDX-License-Identifier: MIT */
/*
 * Steps that every way into a sandbox takes: the native jail after its namespaces (confine.h), the
 * plain one after nothing (plain.h), and sandbox-init inside bubblewrap's. A list of steps is run
 * in order; one that fails is reported by name on the control socket, and the sandbox is no more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "wire/init_control.h"
#include "wire/launch.h"

/* Where the daemon's five descriptors end up in pid 1; everything else is closed. */
enum {
    INIT_FD_CTL = 3,
    INIT_FD_JOB,
    INIT_FD_IN,
    INIT_FD_OUT,
    INIT_FD_ERR,
    INIT_FD_END,
    INIT_FD_DEPENDENCIES,
    INIT_FD_LENT, /* a socket for a workspace with what is lent (launcher/lend.h) */
    INIT_FD_LAST,
    /* Of a pid 1 that becomes sandbox-init (order.h): */
    INIT_FD_ORDER = INIT_FD_LAST, /* a struct init_order to read */
    INIT_FD_PROGRAM,              /* that program, until it is executed */
    INIT_FD_NULL,                 /* /dev/null, if the keeper has all three open */
};

/* RLIMIT_CORE, soft and hard, of everything behind the guard. The kernel starts a core_pattern that
 * is a pipe ("|program") as root of the host even where the limit is 0; only 1 tells it not to. A
 * file of 1 byte is below the smallest dump, so none is written either. */
enum { CORE_LIMIT = 1 };

struct sock_fprog;

struct confine {
    bool rootless;
    uid_t uid;                    /* on the host (root), or 0 in the launcher's user namespace */
    gid_t gid;                    /* the same for the group */
    const struct launch_msg *msg; /* limits */
    const int *fds;               /* ctl, job, in, out, err */
    int workspace;                /* a detached mount or a directory, or -1 */
    int dependencies;             /* a detached mount, or -1 */
    int lent;                     /* a socket for a workspace with what is lent, or -1 */
    int host_net;                 /* a network namespace to enter instead of ours, or -1 */
    const struct sock_fprog *filter;
    int said;         /* to become standard error of the next program, or -1 */
    const char *room; /* directory of a plain sandbox */
    bool kept;        /* what pid 1 needs to become sandbox-init is open already (birth_keep()) */
};

struct confine_step {
    const char *name;
    int (*run)(const struct confine *c); /* 0 or -errno */
};

/* Reports and exits on failure. `moved` is the index of the step that moves the descriptors: until
 * it has run, the control socket is where it was. */
void steps_run(const struct confine_step *steps, size_t n, size_t moved, const struct confine *c);

/* Tells through the control socket what failed; r is -errno. steps_fail() ends the process, too. */
must_check int steps_tell(int ctl, const char *what, int r);
__attribute__((noreturn)) void steps_fail(int ctl, const char *what, int r);

/* Puts a descriptor under a number that the next program knows, open for it. Taken if it is there
 * already, else the caller's still. */
must_check int steps_place(int *fd, int number);

/* ---- the steps ---- */

int step_descriptors(const struct confine *c); /* the detached mount goes to INIT_FD_END */
int step_oom_score(const struct confine *c);
int step_limits(const struct confine *c); /* of init, and so of everybody */
/* The same; processes: their number as well, which counts by user. */
int limits_set(const struct confine *c, bool processes);
int step_undumpable(const struct confine *c);
int step_no_new_privileges(const struct confine *c);
