/* SPDX-License-Identifier: MIT */
/*
 * The outer process of every launcher: it starts the launcher, and another one should that end by
 * accident. What a struct launcher is, how one is forked and what is done before and after depends
 * on the system (guard_linux.c, guard_posix.c).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

enum { GUARD_DAEMON_FD = 3, GUARD_ARGUMENTS = 10 };

struct launcher;

struct guard {
    /* Once. */
    int (*begin)(struct launcher *l, struct err *e);
    /* Before each start; leaves nothing behind when it fails. */
    int (*prepare)(struct launcher *l, struct err *e);
    /* As fork() does. */
    pid_t (*start)(const struct launcher *l, struct err *e);
    /* After each, whether it could be started or not. */
    void (*clean_up)(struct launcher *l, bool accident);
};

/* The launcher itself. Ends with EXIT_SUCCESS when the daemon closed its socket or has been told
 * why nothing works. */
__attribute__((noreturn)) void launcher_main(struct launcher *l);

/* Nobody shall read what the daemon told us: init inherits what lists of processes show of us. */
void guard_hide_arguments(int argc, char **argv);

/* Until there is nothing more to start; returns what main() does. NULL: we were not started by the
 * daemon. */
int guard_run(const struct guard *g, struct launcher *l);
