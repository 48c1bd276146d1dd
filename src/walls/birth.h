/* SPDX-License-Identifier: MIT */
/*
 * How a sandbox is born in a zygote's keeper, which has a whole interpreter in
 * its memory. The first process needs a copy of that. Pid 1 does not, and copying
 * and discarding one for it would take longer than all the walls.
 *
 *   keeper ──clone, memory lent──▶ pid 1: walls ──fork, memory copied──▶ first process
 *     │ stands still                 │                                      │ waits
 *     ◀──memory given back── exec sandbox-init, undumpable ──gate opens──▶  job
 *
 * While the memory is lent nobody but us is in the sandbox, and nothing of a
 * tenant has been read. The first process shares its user with pid 1, so it
 * stays behind the gate until pid 1 cannot be looked into any more.
 */
#pragma once

#include <sys/types.h>

#include "walls/keeper.h"

/* Once in a keeper, in the root of its sandboxes: opens what each of them would. 0 or -errno. */
must_check int birth_keep(void);

/* Becomes k->kind->become() in the new process. The pid, or -1 with errno. */
pid_t birth_clone(struct keeper *k, const struct launch_msg *m, const int *fds, size_t fds_n,
                  int *ret_pidfd);

/* In the new process, behind its walls: makes the first process and becomes sandbox-init. */
__attribute__((noreturn)) void birth_end(struct keeper *k, const struct launch_msg *m);
