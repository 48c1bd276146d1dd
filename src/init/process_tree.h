/* SPDX-License-Identifier: MIT */
/*
 * The processes below one of ours, as /proc tells them. The caller must be the reaper of what it
 * asks about (a subreaper, or pid 1): then no descendant can leave the tree by losing its parent.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * SIGKILL to every process below `top`, apart from the children named in `spare` and what is below
 * those. Returns how many living ones there were. A fork in progress may escape one call: call
 * again until it returns 0.
 */
size_t tree_kill(pid_t top, const pid_t *spare, size_t spare_n);

/* How many processes there are: in all (top 0), or `top` and those below it. */
size_t tree_count(pid_t top);

/* Calls fn for `top` and every living process below it; for all there are when top is 0. */
typedef void tree_fn(void *user, pid_t pid);
void tree_each(pid_t top, tree_fn *fn, void *user);
