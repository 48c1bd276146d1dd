/* SPDX-License-Identifier: MIT */
/* What a slot's control group says, read through descriptors that the launcher handed out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/result.h"
#include "wire/wire.h"

/* Counters when a box was handed out: groups outlive sandboxes. */
struct usage_base {
    int64_t cpu_us, oom, pids;
};

struct usage_files {
    int fd[LAUNCH_FDS_STARTED]; /* owned, as CG_USED_...; -1 when closed */
    bool v2;
    struct usage_base last; /* when the last sandbox in it was dead: of a new group 0 */
};

void usage_files_init(struct usage_files *u);
void usage_files_set(struct usage_files *u, int fds[LAUNCH_FDS_STARTED], bool v2); /* takes them */
void usage_files_close(struct usage_files *u);

/* What was denied is counted from the end of the sandbox before: the program of this one may have
 * run into a limit by the time it is known where it runs. */
void usage_mark(const struct usage_files *u, struct usage_base *ret);
/* Everything in it is dead. */
void usage_settle(struct usage_files *u);
/* Once more when a prepared sandbox is taken: it has used its processor, but met no limit. */
void usage_mark_cpu(const struct usage_files *u, struct usage_base *ret);
/* Is one process all that a tenant has? threads: it may have several. False when not known. */
bool usage_is_alone(const struct usage_files *u, bool threads);
/* denied: how often processes were, too. */
void usage_since(const struct usage_files *u, const struct usage_base *base, bool denied,
                 struct usage *ret);
