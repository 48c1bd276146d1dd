/* SPDX-License-Identifier: MIT */
/*
 * What one of our processes asks of the kernel for itself.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct cpus; /* cpus.h */

/* What lists of processes call it. */
void process_name(const char *name);
/* Orphans below us become our children. -errno */
must_check int process_adopt(void);
/* We end when our parent does. -errno */
must_check int process_follow(void);
/* A program of a sandbox gets a session of its own, so that signals can be sent to its group.
 * -errno */
must_check int process_apart(void);
/* The processors a program may run on. */
void process_spread(const struct cpus *cpus);
/* May others of our user look into us? -errno */
must_check int process_visible(bool on);
/* No program that we execute gives us any privilege. -errno */
must_check int process_lock(void);
/* For good: no groups but this one. -errno */
must_check int process_user(uid_t uid, gid_t gid);
/* Limits that no request changes: signals, message queues, priorities. -errno */
must_check int process_limits(void);
/* Bytes, from what getrusage() says. */
int64_t process_maxrss(long told);
/* The number that was given out last in our namespace, where they are given out one after the
 * other, to threads even; -1: not known. */
long process_newest(void);
/* How many threads a process has, as the kernel counts them; -1: not known. */
long process_threads(pid_t pid);

/* ---- children ---- */

enum {
    SIGNALS_DONE = 1,  /* a first process may say that it is done (runner_leave()) */
    SIGNALS_ALONE = 2, /* no other signal is to reach us */
};

/* A descriptor that is readable when a child has died. One in a process. Or -errno. */
must_check int signals_open(unsigned flags);
/* Takes what made it readable. True: `from` said that it is done, with this value; there may be
 * more. */
bool signals_next(int fd, pid_t from, int *ret_value);
/* The same, for whom only children matter. */
void signals_take(int fd);
