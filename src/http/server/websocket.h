/* SPDX-License-Identifier: MIT */
/*
 * A call that becomes a WebSocket, and what a handler sees of it.
 *
 *   request ──websocket_accept()──▶ open ──the client closed, or vanished──▶ closed() ─▶ gone
 *                                    └──websocket_close()──▶ farewell ──its answer, or time──▶ gone
 *
 * A client that is silent is asked for a sign of life by a ping; one that gives none is gone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/server/http_call.h"
#include "http/server/ws_frames.h"

enum {
    WEBSOCKET_PING_MS = 30 * 1000,   /* silence after which a client is asked */
    WEBSOCKET_FAREWELL_MS = 5 * 1000 /* for its close frame, after ours */
};

struct websocket;

struct websocket_events {
    void (*message)(void *user, bool text, const char *p, size_t n);
    /* websocket_send() has room again. */
    void (*drained)(void *user); /* may be NULL */
    /* The client closed it, vanished, or broke the protocol; it is gone when this returns. */
    void (*closed)(void *user);
    void *user;
};

/* Does the request ask for a WebSocket? */
bool websocket_wanted(const struct http_call *c);
/*
 * The secret of a web page, which cannot set other fields of a handshake and must not write secrets
 * into addresses: `Sec-WebSocket-Protocol: sandbox-executor, bearer.SECRET`. The answer names the
 * first of the two. NULL: it has none.
 */
const char *websocket_secret(const struct http_call *c);
/* Checks the handshake and the Origin. NULL: it was answered with why not, or out of memory. The
 * handler must have asked for the notice that the client has gone before it returned. */
struct websocket *websocket_accept(struct http_call *c, const struct websocket_events *events);
/* Checks the same without answering 101 yet. False: it was answered with why not. */
bool websocket_check(struct http_call *c);
/* False: so much waits for the client that the sender should wait for drained(). */
bool websocket_send(struct websocket *w, bool text, const void *p, size_t n);
/* Back-pressure on message(): what was read already still comes. */
void websocket_pause(struct websocket *w);
void websocket_resume(struct websocket *w);
/* The last act: no callback comes any more, and it must not be touched again. NULL is fine. */
void websocket_close(struct websocket *w, uint16_t code, const char *reason);
