/* SPDX-License-Identifier: MIT */
/*
 * Pid 1 of every sandbox (of a plain one: the reaper of all it started). It is locked before it
 * starts here, shares the tenant's user and limits, and has three duties: start processes on
 * command, reap everything, report truthfully. It parses nothing that a tenant wrote: jobs go from
 * the daemon straight to the process that will run them.
 *
 * An ephemeral sandbox has one first process, started at once and waiting for
 * its job. When that ends, init kills whatever is left, waits until nothing is,
 * and only then reports; it lives on until the daemon has collected the files
 * and closes the control socket, which ends the sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cpus; /* own_process.h */

/* What a first process does: descriptors 0, 1, 2 are its streams, 3 the job. Must not return. */
typedef void init_runner_fn(void *user);

struct init_host {
    init_runner_fn *run;
    void *user; /* borrowed */
};

struct init {
    const struct init_host *host; /* borrowed */
    int ctl;                      /* owned */
    int tree;                     /* owned: what to scan instead of /workspace; -1: that */
    bool persistent;              /* no first process; lives until the socket closes */
    pid_t first;                  /* one that is there already and waits behind the gate, or 0 */
    int gate;                     /* owned: the end that is written to, if so */
    bool shared;                  /* no pid namespace: not pid 1, but a reaper all the same */
    bool accounted;               /* control groups know what was used, reaped or not */
    bool lazy;                    /* files were lent: what is older than init is untouched */
    uint64_t memory_max;          /* watched by init itself; 0: a control group does */
    const struct cpus *cpus; /* borrowed: what processes may run on, and init, if it starts them */
};

__attribute__((noreturn)) void init_run(const struct init *conf);
