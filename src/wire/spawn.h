/* SPDX-License-Identifier: MIT */
/* Programs of ours that the daemon starts, each at the other end of a socket. */
#pragma once

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { START_FD = 3 }; /* its end of the socket */

/* Starts `name` of that directory with an empty environment, nothing open but the standard streams
 * and its end, and no signal blocked. argv is NULL-terminated and goes along as it is. */
must_check int program_start(const char *directory, const char *name, char *const argv[],
                             int *ret_sock, pid_t *ret_pid, struct err *e);
