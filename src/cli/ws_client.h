/* SPDX-License-Identifier: MIT */
/* The client's end of a WebSocket: messages over a connection, framed by libwslay. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "cli/daemon_at.h"

struct ws_client;

enum { WS_MESSAGE_MAX = 16 << 20 };

/* A message. -1: no more of them. */
typedef int ws_message_fn(void *user, bool text, const char *p, size_t n);

/* path: as in struct http_request. A refusal of the daemon becomes its words. */
must_check int ws_open(const struct daemon_at *at, const char *path, struct ws_client **ret,
                       struct err *e);
void ws_close(struct ws_client *w); /* NULL is fine */
int ws_fd(const struct ws_client *w);
/* What to wait for on the descriptor: POLLIN, POLLOUT. */
short ws_wants(const struct ws_client *w);
/* Reads and writes what can be without waiting. 1: go on; 0: the connection has ended, or fn()
 * wants no more; -1: it broke. */
must_check int ws_move(struct ws_client *w, ws_message_fn *fn, void *user);
/* Queues a message. -1: no memory, or the connection is closing. */
must_check int ws_send(struct ws_client *w, bool text, const char *p, size_t n);
/* Bytes that wait to be written: a caller with much to say stops reading meanwhile. */
size_t ws_waiting(const struct ws_client *w);
