/* SPDX-License-Identifier: MIT */
/*
 * A server gives up what it needed only to start.
 *
 * Two walls, both for the whole life of the process and of every thread it makes later: a system
 * call filter, under which it executes nothing, forks nothing, becomes nobody else and mounts
 * nothing; and Landlock, under which it writes only below the directories it names. A bug in a
 * parser then meets them before it meets the host.
 *
 * The filter decides by number alone wherever it can: the kernel remembers such answers, so calls
 * that are allowed cost nothing more.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum lockdown_wall {
    LOCKDOWN_CALLS = 1, /* the filter is there */
    LOCKDOWN_FILES = 2, /* so is Landlock */
};

/*
 * To be called with no_new_privs set, before the first thread is made. `writable` are directories;
 * those that do not exist are left out. What the kernel does not have is missing in *ret_walls;
 * what it has and refuses is an error.
 */
must_check int lockdown(const char *const *writable, size_t n, unsigned *ret_walls, struct err *e);
