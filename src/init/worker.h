/* SPDX-License-Identifier: MIT */
/*
 * A worker of a persistent sandbox: a process that init forks and that the daemon
 * talks to directly (enum worker_verb in wire.h). It does one thing at a time, as
 * the sandbox's user and in its limits: run a command, or look after a file.
 *
 *   IDLE ──RUN──▶ running ──the program ended──▶ its children live on ──last one──▶ IDLE
 *     └──file verb──▶ IDLE
 *
 * While a command runs the worker is the reaper of everything the command starts,
 * so nothing can leave its tree, and killing the tree is exact. A tenant can kill
 * its worker, they share a user; then whatever was below it comes to init, which
 * kills everything that is no worker. The daemon trusts a worker no further than
 * the tenant itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wire/wire.h"

/* shared: the file system is everybody's, and relative paths begin where the daemon was started. */
__attribute__((noreturn)) void worker_run(int sock, bool shared);

/* ---- for the verbs ---- */

/* Sends an answer; ends the process when nobody is left to hear it. */
void worker_say(int sock, struct init_msg *m, const void *bytes, size_t n, int fd);
/* The last answer to a request: errno 0, or what failed and where (may be NULL). */
void worker_done(int sock, int error, enum worker_op op, const char *path);
