/* SPDX-License-Identifier: MIT */
/* A new process that is to become a program at once. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* Made once in a process, for all it will start. */
struct starter {
    char *stack; /* owned: a child's, until it has become the program */
};
must_check int starter_open(struct starter *s); /* -errno */

/*
 * Runs fn(state) in the new process. If that returns, it has failed, the process ends, and what it
 * has left in `state` is there for us to see. Waits until one or the other has happened. The pid,
 * or -1 with errno.
 */
must_check pid_t starter_run(const struct starter *s, void (*fn)(void *state), void *state);
