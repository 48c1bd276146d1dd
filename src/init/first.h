/* SPDX-License-Identifier: MIT */
/* The first process of a sandbox, forked by init or by a zygote's pid 1 (walls/birth.h). */
#pragma once

#include "init/init.h"
#include "wire/wire.h"

struct cpus; /* wire/cpus.h */

/* In the new process; fds: job, in, out, err. */
__attribute__((noreturn)) void first_become(const struct init_host *host,
                                            const int fds[INIT_FDS_SPAWN]);
/* In one that is there before init, with the descriptors of pid 1: waits at the gate, then the
 * same.
 */
__attribute__((noreturn)) void first_await(const struct init_host *host, const struct cpus *cpus,
                                           int gate);
