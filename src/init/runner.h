/* SPDX-License-Identifier: MIT */
/*
 * The first steps of a process inside: read the job from descriptor 3, apply
 * it, become the program. The sandbox is locked; what is read here is the
 * tenant's, and what goes wrong here is the tenant's alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "wire/wire.h"

enum { RUNNER_FD = 3 };

/* A job in memory. argv and envp are NULL-terminated views into `strings`. */
struct job {
    struct job_head head;
    char *strings, **argv, **envp; /* owned */
    const char *cwd;
};

/* Is there one to read, now or within this time? Then whatever could be done before would only
 * delay it. */
bool runner_has_job(int ms);
/* Before a job is there: touches so much of what malloc gives out next. After a fork the first
 * touch of a page is its copy. */
void runner_touch(size_t n);
/* room: of a plain sandbox, whose files are elsewhere than the job says (room.h); else NULL. */
/* Reads a job, applies limits, directory and files. 0, or -errno with *ret_what saying at which
 * point; -ENODATA: the daemon closed the socket without a job. */
must_check int runner_read(const char *room, struct job *ret, const char **ret_what);
/* That in two: waits for the head of one, and reads and applies the rest. */
must_check int runner_await(struct job *ret);
must_check int runner_apply(const char *room, struct job *j, const char **ret_what);
/* The parts of that, for a helper of a persistent sandbox: */
/* Behind runner_await(): cwd, argv and envp. */
must_check int runner_strings(struct job *j);
/* That for strings in memory; *at is how far it came. */
must_check int runner_split(struct job *j, size_t *at);
must_check int runner_limit(const struct job_head *h);
/* Becomes the program; returns -errno only. */
must_check int runner_become(const struct job *j);
/* Tells the daemon by an error frame, and standard error, why nothing ran; exits with 126 or 127.
 */
__attribute__((noreturn)) void runner_fail(const char *what, int r);
/* Leaves with a status that is known at once, not when the memory has been taken down, which takes
 * as long as a small program runs: to the daemon itself, if the job's flags allow it and there is
 * nothing to look after, else to init. Everything the process had to say must be written, but for
 * the last frame of all, which may be short and come along. threads: the interpreter has some of
 * its own, and ends by itself instead of waiting for the end of its sandbox. */
__attribute__((noreturn)) void runner_leave(uint32_t flags, int status, bool threads,
                                            const char *last, size_t last_n);

/* For struct init_host: execs the job. user: the room, or NULL. */
__attribute__((noreturn)) void runner_exec(void *user);
/* That in two: reads and applies a job, or tells why not; and becomes its program. */
void runner_take(const char *room, struct job *ret);
__attribute__((noreturn)) void runner_start(const struct job *j);
