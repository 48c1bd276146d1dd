/* SPDX-License-Identifier: MIT */
/*
 * The server's side of a WebSocket (RFC 6455) without its connection: bytes of the client become
 * messages, messages become bytes for it. Pings are answered here, and so is a close frame. A frame
 * that is not masked, a text that is not UTF-8, a message that is too long and everything else that
 * the protocol forbids ends with a close frame that says why. A face over libwslay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
    WS_CONTROL_MAX = 125,        /* bytes of a ping, a pong, or a reason */
    WS_ACCEPT_MAX = 29,          /* the answer to a key, with its NUL */
    WS_MESSAGE_MAX = 1 << 20,    /* bytes of one message of a client */
    WS_CLOSE_NORMAL = 1000,      /* both sides are done */
    WS_CLOSE_AWAY = 1001,        /* the server or what it spoke of ends */
    WS_CLOSE_PROTOCOL = 1002,    /* a frame that is none */
    WS_CLOSE_UNSUPPORTED = 1003, /* a message of a kind that is not understood */
    WS_CLOSE_POLICY = 1008,      /* a message that is understood, but wrong */
    WS_CLOSE_BROKEN = 1011,      /* the server failed */
};

struct ws_frames_events {
    /* Not NUL-terminated; text is UTF-8. */
    void (*message)(void *user, bool text, const char *p, size_t n);
    /* Bytes for the client. */
    void (*write)(void *user, const void *p, size_t n);
    void *user;
};

struct ws_frames;

/* NULL: out of memory. */
struct ws_frames *ws_frames_new(const struct ws_frames_events *events, size_t message_max);
void ws_frames_free(struct ws_frames *f); /* NULL is fine; not from inside message() */
/* False: the connection is over. Everything that is still to be said has been written. */
must_check bool ws_frames_feed(struct ws_frames *f, const char *p, size_t n);
/* Also from inside message(). False: out of memory, or a close frame was sent before. */
must_check bool ws_frames_send(struct ws_frames *f, bool text, const void *p, size_t n);
must_check bool ws_frames_ping(struct ws_frames *f);
/* Nothing more can be sent behind it. */
void ws_frames_close(struct ws_frames *f, uint16_t code, const char *reason);

/* The value of Sec-WebSocket-Accept. False: the key is none (16 bytes in base64). */
must_check bool ws_accept_key(const char *key, char out[WS_ACCEPT_MAX]);
