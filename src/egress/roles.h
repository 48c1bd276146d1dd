/* SPDX-License-Identifier: MIT */
/* The roles of sandbox-egress (PROCESSES). None of them returns. */
#pragma once

enum { EGRESS_FD = 3 }; /* to the daemon */

/* `hosts`: a file like /etc/hosts, or "". */
__attribute__((noreturn)) void master_run(int daemon, const char *hosts);
__attribute__((noreturn)) void dialler_run(int master, const char *hosts);
/* Waits for its order on that socket, and closes it. */
__attribute__((noreturn)) void door_run(int master);
