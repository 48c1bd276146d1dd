/* SPDX-License-Identifier: MIT */
/*
 * All processes of the host, where no file tells: POSIX has one way to ask, the program ps. That
 * takes milliseconds, so whoever wants to know does so rarely.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct process {
    pid_t pid, parent, group, session;
    uid_t user;
    uint64_t resident; /* bytes; what several share counts for each */
    bool dead;         /* and nobody has noticed yet */
    bool below;        /* for whoever looks for a tree */
};

struct processes {
    struct process *v; /* owned; ascending pids */
    size_t n, room;
};

/* Without those that were started to find out. -errno */
must_check int processes_read(struct processes *ret);
void processes_free(struct processes *p);
