/* SPDX-License-Identifier: MIT */
/*
 * The Connect protocol with JSON, as E2B's SDKs speak it to what runs in a sandbox.
 *
 * A unary call has one JSON object as its body and one as its answer; an error has the status of
 * its code and {"code":NAME,"message":TEXT}. A stream is asked for with one envelope
 * (Content-Type: application/connect+json) and answered with status 200 and envelopes; the last one
 * is flagged and says {} or {"error":{…}}. connect_decode() and connect_refuse() see from the
 * request which of the two it is.
 */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/shape.h"
#include "http/server/http_call.h"

enum connect_code {
    CONNECT_CANCELED,
    CONNECT_UNKNOWN,
    CONNECT_INVALID_ARGUMENT,
    CONNECT_DEADLINE_EXCEEDED,
    CONNECT_NOT_FOUND,
    CONNECT_ALREADY_EXISTS,
    CONNECT_PERMISSION_DENIED,
    CONNECT_RESOURCE_EXHAUSTED,
    CONNECT_FAILED_PRECONDITION,
    CONNECT_ABORTED,
    CONNECT_OUT_OF_RANGE,
    CONNECT_UNIMPLEMENTED,
    CONNECT_INTERNAL,
    CONNECT_UNAVAILABLE,
    CONNECT_DATA_LOSS,
    CONNECT_UNAUTHENTICATED,
    CONNECT_CODE_COUNT,
};

/* The code for an error of a use case. */
enum connect_code connect_code_of(const struct err *e);

/* ---- the request ---- */

/*
 * Decodes the one message of a call; unknown members and null are ignored whatever the shape says.
 * False: answered. The shaping is to be released (shaping_done) in both cases.
 */
bool connect_decode(struct http_call *c, const struct shape *shape, void *target,
                    struct shaping *s);
/* Connect-Timeout-Ms; 0: no limit. */
uint64_t connect_timeout_ms(const struct http_call *c);

/* ---- answers ---- */

void connect_reply(struct http_call *c, struct buf *json); /* unary, 200; `json` is taken */
void connect_reply_empty(struct http_call *c);             /* {} */
/* The error of a call whose answer has not begun, unary or stream. */
void connect_refuse(struct http_call *c, enum connect_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void connect_refuse_err(struct http_call *c, const struct err *e);

/* ---- streams ---- */

/*
 * What happens to a stream. After gone and expired the call is over and must not be touched;
 * connect_done() is still to be called, then or later. None may be NULL, except expired.
 */
struct connect_events {
    void (*gone)(void *user);    /* the client left */
    void (*drained)(void *user); /* there is room again after connect_send() said full */
    /* Connect-Timeout-Ms has passed and the stream has been ended with deadline_exceeded. NULL: the
     * stream has no deadline of its own (Start, whose deadline is the process's). */
    void (*expired)(void *user);
};

struct connect_stream {
    struct http_call *call; /* borrowed; NULL: it is over */
    const struct connect_events *on;
    void *user;
    const char *ping; /* JSON of a keepalive message */
    struct event ping_timer, deadline;
    uint32_t ping_s;
    bool started; /* a message has been sent: keepalive messages may follow */
    bool full;
};

/* Answers 200 and begins the stream; keepalive messages follow the first one. `ping` is static. */
void connect_begin(struct connect_stream *s, struct http_call *c, const char *ping,
                   const struct connect_events *on, void *user);
/* Sends one message. False: the client's queue is full, wait for drained(). */
bool connect_send(struct connect_stream *s, const char *json, size_t n);
/* Ends the stream; nothing when it is over. */
void connect_end(struct connect_stream *s);
void connect_fail(struct connect_stream *s, enum connect_code code, const char *words);
/* To be called before the memory of a stream goes; a stream that is not over is broken off. */
void connect_done(struct connect_stream *s);
