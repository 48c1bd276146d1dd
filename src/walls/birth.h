/* SPDX-License-Identifier: MIT */
/*
 * How a sandbox is born. Pid 1 borrows the keeper's memory for as long as it puts up the walls, and
 * then becomes the program sandbox-init: it never has a copy of its own.
 *
 *   keeper ──clone, memory lent──▶ pid 1: walls ──▶ exec sandbox-init ──▶ first process: job
 *     │ stands still                                  │
 *     ◀──memory given back────────────────────────────┘
 *
 * A zygote's keeper has a whole interpreter in its memory, of which the first process needs a copy.
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

struct init_order; /* init/order.h */

/* Once in a keeper, in the root of its sandboxes: opens what each of them would. 0 or -errno. */
must_check int birth_keep(struct keeper *k);

/* Becomes k->kind->become() in the new process. The pid, or -1 with errno. */
pid_t birth_clone(struct keeper *k, const struct launch_msg *m, const int *fds, size_t fds_n,
                  int *ret_pidfd);

/* In the new process, behind its walls: becomes sandbox-init. If the first process is a copy, it is
 * made before. What only the keeper knows is added to the order. */
__attribute__((noreturn)) void birth_end(struct keeper *k, struct init_order *o);
