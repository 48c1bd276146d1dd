/* SPDX-License-Identifier: MIT */
/*
 * One HTTP request being answered: what a handler sees of the server.
 *
 * A handler gets the call when the route has accepted the head (and, unless the
 * route streams, when the whole body is there). It answers exactly once, now or
 * later: http_reply*() or http_stream_begin() … http_stream_end(). After that, or
 * after the gone callback, the call must not be touched again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct http_call;
struct app;

enum { HTTP_PARAMS_MAX = 4 };

struct http_request {
    const char *method;
    const char *path;  /* percent-decoded, without the query */
    const char *query; /* raw, "" when absent */
    const char *id;    /* request id: the caller's X-Request-Id when well formed, else made */
    const char *param[HTTP_PARAMS_MAX]; /* what the '*' segments of the route matched, decoded */
    const char *body;                   /* NUL-terminated for convenience; may contain NULs */
    size_t body_n;
    bool head; /* the method was HEAD: the body is not sent */
};

const struct http_request *http_request(const struct http_call *c);
/* The body as it came, NUL-terminated; it is the caller's, and the request has none any more. */
struct buf http_take_body(struct http_call *c);
const char *http_header(const struct http_call *c, const char *name); /* NULL when absent */
/* The header at that place, from 0 on; false: there are no more. */
bool http_header_at(const struct http_call *c, size_t i, const char **ret_name,
                    const char **ret_value);
/* Path and query as they came, still percent-encoded. */
const char *http_target(const struct http_call *c);
/* Does the request have a body, and how long is it? -1: it comes in chunks. */
int64_t http_body_length(const struct http_call *c);
struct app *http_app(const struct http_call *c);
/* The call has brought a secret of this server, other than by ROUTE_AUTH: its connection keeps its
 * place when there are too many. */
void http_trust(struct http_call *c);
struct auth;
struct auth *http_auth(const struct http_call *c); /* NULL: like mode none */
struct dialect;
const struct dialect *http_dialect(const struct http_call *c);

/* The value of a query parameter, percent-decoded into out; false when absent or too long. */
bool http_query(const struct http_call *c, const char *name, char *out, size_t out_max);

/* Extra response header; before the answer begins. Values with control characters are dropped. */
void http_set_header(struct http_call *c, const char *name, const char *value);

/* The answer. `body` is taken (emptied) and may be NULL. */
void http_reply(struct http_call *c, int status, const char *type, struct buf *body);
/* The same of bytes that live as long as the program: nothing is copied. */
void http_reply_static(struct http_call *c, int status, const char *type, const void *p, size_t n);
/* One JSON value, as the call's dialect sends it. `json` is taken. */
void http_reply_json(struct http_call *c, int status, struct buf *json);
void http_reply_text(struct http_call *c, int status, const char *text); /* ends in one newline */
/* In the words of the call's dialect. */
void http_reply_error(struct http_call *c, const struct err *e);
/* A file: the descriptor is taken; sent with sendfile. */
void http_reply_file(struct http_call *c, int status, const char *type, int fd, uint64_t offset,
                     uint64_t length);

/* A body of unknown length (chunked; until close for 1.0). */
void http_stream_begin(struct http_call *c, int status, const char *type);
/* Bytes queued for the client after this write. The writer must stop above HTTP_STREAM_HIGH and
 * wait for the drain callback. */
size_t http_stream_write(struct http_call *c, const void *p, size_t n);
void http_stream_end(struct http_call *c);
/* It cannot be completed: the connection ends without the last chunk, so that the client knows. */
void http_stream_abort(struct http_call *c);
enum { HTTP_STREAM_HIGH = 64 * 1024 };

/*
 * The answer of another server, passed on: its status, its words, and its fields without those that
 * frame it. http_stream_write() … http_stream_end() bring the body; with a length exactly that many
 * bytes, else the answer is broken off. A body that there is not by the method or by the status is
 * not sent.
 */
struct http_relayed {
    int status;
    const char *reason;
    const char *fields; /* "Name: value\r\n", one after the other */
    size_t fields_n;
    int64_t length; /* of the body; -1: unknown */
};
void http_relay_begin(struct http_call *c, const struct http_relayed *r);

/*
 * Answers 101: the connection speaks `protocol` from now on. What the client sends reaches data()
 * of http_on_body(), without an end; what http_stream_write() gets goes out as it is, and
 * http_stream_end() closes. At any time before the answer has begun, of a request of HTTP/1.1 whose
 * body, if it has one, has come whole.
 */
void http_upgrade(struct http_call *c, const char *protocol);
/* Did the client ask to speak this protocol (Upgrade, Connection, HTTP/1.1)? */
bool http_wants_upgrade(const struct http_call *c, const char *protocol);

/*
 * The client vanished before the answer was complete (a half-closed connection counts). The call
 * is invalid when fn returns. Set it before the handler returns. A call without it stays valid
 * until it is answered, whatever became of the client, who gets the answer if it still reads. Never
 * called from inside an http_*() function.
 */
typedef void http_gone_fn(void *user);
void http_on_gone(struct http_call *c, http_gone_fn *fn, void *user);
/* Has the client of a call without a gone callback left? Its answer is sent to no one. */
bool http_is_left(const struct http_call *c);
/* The queue fell below the high mark. */
typedef void http_drain_fn(void *user);
void http_on_drain(struct http_call *c, http_drain_fn *fn, void *user);

/*
 * Streaming request bodies (ROUTE_BODY_STREAM): set in the handler, which runs before the body.
 * data() returns 0, or a status to refuse with: then the call is answered and over, and gone() is
 * not called. end() comes after the last byte and never while paused. Pausing stops reading from
 * the client. To answer before the end is fine.
 */
typedef int http_data_fn(void *user, const char *p, size_t n);
typedef void http_end_fn(void *user);
void http_on_body(struct http_call *c, http_data_fn *data, http_end_fn *end, void *user);
void http_body_pause(struct http_call *c);
void http_body_resume(struct http_call *c);
