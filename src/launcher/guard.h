/* SPDX-License-Identifier: MIT */
/* Between the outer process of sandbox-launcher, which starts the launcher again should it end by
 * accident, and the launcher itself. */
#pragma once

enum { GUARD_DAEMON_FD = 3 };

struct launcher;

/* Ends with EXIT_SUCCESS when the daemon closed its socket or has been told why nothing works. */
__attribute__((noreturn)) void launcher_main(struct launcher *l);
