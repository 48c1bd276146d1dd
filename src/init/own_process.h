/* SPDX-License-Identifier: MIT */
/*
 * What one of our processes asks of the kernel for itself.
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>
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
/* Soft and hard; the hard limit, where that is lower already. -errno */
must_check int process_limit(int what, rlim_t limit);
/* Limits that no request changes: signals, message queues, priorities. -errno */
must_check int process_limits(void);
