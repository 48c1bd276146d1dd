/* SPDX-License-Identifier: MIT */
/*
 * A helper of a persistent sandbox: a process that pid 1 forks and that the daemon talks to (enum
 * help_verb in wire.h). It works as the sandbox's user and in its limits, and does one thing at a
 * time: it looks after a file, or runs a program.
 *
 *   program:  started ──READY──▶ running ──the program ended──MAIN_EXITED──▶ its children live on
 *                                   └──nothing is left──EXITED, DONE──▶ idle ◀──────┘
 *   file:     a request, its answers, the next request
 *
 * The helper is the reaper of everything its program starts, so nothing can leave its tree, and
 * killing the tree is exact. The tenant has the same user and can kill the helper; then the tree
 * comes to pid 1, which kills everything that is not below a helper. The daemon believes a helper
 * no more than the tenant itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/wire.h"

struct job; /* runner.h */

/* A helper whose programs are copies of its own memory. */
struct helper_host {
    /* In the copy, in its directory and with its descriptors and limits. Must not return. */
    void (*run)(void *user, const struct job *j);
    void *user; /* borrowed */
};

/* Answers a request about a file (files.h). False: it was none. */
typedef bool helper_files_fn(int sock, const struct init_msg *m, char *bytes, size_t n, int fd,
                             bool shared);

struct helper_conf {
    helper_files_fn *files;         /* NULL: it only runs a program */
    const struct helper_host *host; /* borrowed; NULL: a program is a file that is executed */
    bool shared; /* the host's files are seen, and relative paths begin where the daemon was
                    started */
};

/* In the new process. */
__attribute__((noreturn)) void helper_run(int ctl, const struct helper_conf *conf);

/* ---- for the file verbs ---- */

/* Sends an answer; ends the process when the daemon has closed its end. */
void helper_say(int sock, struct init_msg *m, const void *bytes, size_t n, int fd);
/* The last answer to a request: errno 0, or what failed and where (may be NULL). */
void helper_done(int sock, int error, enum help_op op, const char *path);
