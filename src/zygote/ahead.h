/* SPDX-License-Identifier: MIT */
/*
 * What every copy of a program executes and looks at, asked for all at once.
 *
 * A copy that waits for its work is soon forgotten by the processor, and then waits for each line
 * of code and data that it comes to, one after the other, for longer than the work itself takes.
 * Asked for beforehand they come side by side.
 *
 * Which ones these are the program finds out once, when it is built: it does the work one
 * instruction at a time and notes where it is, and where its registers point to. Steps are slow
 * (2 us each, 13 in some virtual machines), so the notes are a file beside the program. They speak
 * of the program and its libraries, wherever those are loaded; what is in no file is not asked for.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { AHEAD_LINE = 64, AHEAD_RUNS_MAX = 2048 };

struct ahead {
    uintptr_t runs[AHEAD_RUNS_MAX]; /* where lines begin, and in the lowest bits how many follow */
    size_t n;
};

/* Does the work step by step and writes to the file what it took. Where no such steps can be taken,
 * that is nothing. 0 or -errno. */
must_check int ahead_learn(void (*work)(void *user), void *user, int fd);

/* What ahead_learn() of this very program has written, once its libraries are loaded. A file that
 * is none, or of another one, does no harm: nothing depends on what is asked for. */
void ahead_load(struct ahead *a, int fd);

/* In a copy whose work has come. */
void ahead_fetch(const struct ahead *a);
