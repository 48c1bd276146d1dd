/* SPDX-License-Identifier: MIT */
/*
 * A daemon of our own, for as long as this process lives.
 *
 *   sbx ──pipe──▶ guardian ──▶ sandbox-executor
 *
 * The guardian is a copy of this process in a session of its own. It starts the daemon, waits until
 * nobody holds the other end of the pipe any more (we ended, however), ends the daemon and removes
 * its state directory.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "cli/daemon_at.h"

struct private_daemon {
    pid_t guardian;
    int life;     /* owned: its end means our end */
    int watching; /* owned: readable once the guardian, and so the daemon, has ended */
};
#define PRIVATE_DAEMON ((struct private_daemon){.guardian = -1, .life = -1, .watching = -1})

/* Listens on the loopback at a port that the kernel chooses, with a secret that nobody else knows.
 * Its log goes to standard error. */
must_check int private_daemon_start(struct private_daemon *p, struct daemon_at *ret, struct err *e);
/* Fine when there is none. */
void private_daemon_end(struct private_daemon *p);
