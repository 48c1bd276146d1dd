/* SPDX-License-Identifier: MIT */
/*
 * Messages of the Model Context Protocol between a client, one message per line, and a daemon.
 *
 * Each request is a POST of its own, so they run side by side; what comes back goes to the client
 * as it comes, whole lines only. Which era a message is of (docs/mcp.md) decides about its headers:
 * those of the handshake era share one session.
 *
 *   bridge_open() … bridge_line(), bridge_turn() … bridge_close()
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/daemon_at.h"

struct bridge;

enum {
    BRIDGE_REQUESTS_MAX = 256,    /* at the same time */
    BRIDGE_OUT_MAX = 256 << 20,   /* bytes that the client has not read yet */
    BRIDGE_OUT_ENOUGH = 8 << 20,  /* from then on nothing is read from it */
    BRIDGE_ANSWER_MAX = 64 << 20, /* bytes of one message of the daemon */
};

must_check int bridge_open(const struct daemon_at *at, struct bridge **ret, struct err *e);
/* What is under way is cancelled and the session ends, its workspace with it. NULL is fine. */
void bridge_close(struct bridge *b);

/* One line of the client, without its end. */
void bridge_line(struct bridge *b, const char *p, size_t n);
/* A line was longer than the client may send. */
void bridge_line_too_long(struct bridge *b, size_t most);
/* Is a request under way? */
bool bridge_is_busy(const struct bridge *b);
/* What the client is to be sent. */
struct buf *bridge_out(struct bridge *b);
/* As http_wait(). */
must_check int bridge_turn(struct bridge *b, struct pollfd *fds, size_t fds_n, int timeout_ms,
                           struct err *e);
