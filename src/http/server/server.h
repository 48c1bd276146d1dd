/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: listeners, limits, shutdown. One loop, one thread.
 *
 * Connections live in conn.h, the request being answered in http_call.h. Nothing
 * here calls back from inside a function a handler called: answers are queued
 * and leave the process when the handler has returned to the loop.
 */
#pragma once

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "http/server/auth.h"

struct app;
struct dialect;
struct http_server;

/* 0 in a number means the default beside it. */
struct http_server_conf {
    const char *host; /* "", "*" or "::": every address, IPv4 and IPv6 */
    uint16_t port;    /* 0: the kernel chooses */
    /* Who answers what; ends with NULL. The first speaks where no other does. */
    const struct dialect *const *dialects;
    struct auth *auth;         /* borrowed; NULL: like mode none */
    const struct log *log;     /* borrowed; NULL: silent */
    const char *allowed_hosts; /* borrowed; see origin.h; NULL: none */
    uint32_t connections_max;  /* 12000, at most 3/4 of the open files; beyond that see places.c */
    uint32_t head_ms;          /* 5000: a head must be complete by then */
    uint32_t idle_ms;          /* 30000: a kept connection without a request */
    uint32_t body_window_ms;   /* 6000: every such window must bring body_rate bytes */
    uint32_t stall_ms;         /* 60000: a client that takes nothing for so long is gone */
    uint64_t body_rate;        /* 1024 */
    uint64_t body_max;         /* 1 MiB, where a route names no limit */
    uint64_t buffered_max;     /* 1 GiB: bodies held in memory together; beyond that 503 */
};

struct http_counters {
    uint64_t open;              /* connections, now */
    uint64_t streams;           /* answers of unknown length under way, now */
    uint64_t buffered;          /* bytes of request bodies held, now */
    uint64_t accepted, refused; /* connections taken; turned away by the limit */
    uint64_t gave_way;          /* idle connections closed because another needed the place */
    uint64_t requests[6];       /* answers by status class; [0] is unused */
    uint64_t gone;              /* clients that left before their answer */
    uint64_t timeouts;          /* connections ended by one of the clocks */
    uint64_t bytes_in, bytes_out;
};

/* Listens. `a` is what http_app() returns. SIGPIPE is ignored from here on. */
must_check int http_server_open(struct event_base *base, const struct http_server_conf *conf,
                                struct app *a, struct http_server **ret, struct err *e);
/* Every call still open is told that its client is gone. NULL is fine. */
void http_server_free(struct http_server *s);
DEFINE_FREEP(struct http_server, http_server_free)

uint16_t http_server_port(const struct http_server *s);
const struct http_counters *http_server_counters(const struct http_server *s);

void http_server_stop_accepting(struct http_server *s);
/*
 * Graceful end: no new connections, idle ones are closed, calls in flight may
 * finish until grace_ms have passed. Then streams get their last chunk, other
 * calls a 503, and done is called once, from the loop. Streams that never end
 * by themselves (ROUTE_FOLLOW) are ended at once.
 */
typedef void http_drained_fn(void *user);
void http_server_drain(struct http_server *s, uint32_t grace_ms, http_drained_fn *done, void *user);
