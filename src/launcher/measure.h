/* SPDX-License-Identifier: MIT */
/*
 * How large a kept workspace is. A tenant decides how much there is to walk, and may forbid its
 * own user to look: so a child of the launcher walks, by descriptors, with the launcher's rights,
 * and neither the launcher nor the daemon waits for it.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "launcher/kept.h"
#include "wire/launch.h"

enum { MEASURES_MAX = 8 }; /* at the same time */

struct measures {
    pid_t child[MEASURES_MAX]; /* 0: free */
};

pid_t *measures_room(struct measures *all); /* for one more child; NULL: none */
/* As fork(), for a child that walks with a low priority. -1 also when there are too many of them.
 */
must_check pid_t measures_fork(struct measures *all);
/* One answer (struct launch_measured) goes into the descriptor; it is borrowed. */
void measure_start(struct measures *all, const struct kept *k, const struct launch_msg *m, int out);
void measure_reaped(struct measures *all, pid_t pid);

/* Walks what is below a directory, which is borrowed. */
void measure_walk(int dir, uint64_t bytes_max, uint64_t files_max, struct launch_measured *ret);
