/* SPDX-License-Identifier: MIT */
/*
 * One row of the API. Every dialect has a table of them (dialect.h); matching, 404,
 * 405 with Allow, authentication, body limits and the documentation come from it.
 *
 * A pattern is a path in which a segment '*' matches exactly one non-empty
 * segment and a last segment '**' the rest, slashes included, also an empty
 * rest ("/files/" but not "/files"). What they matched is request->param[0..],
 * decoded. Segments are split before they are percent-decoded, so an encoded
 * slash stays inside its parameter. Earlier rows win.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "http/server/http_call.h"

struct shape;

typedef void api_fn(struct http_call *c);
/* The largest body in bytes; asked once per request, after authentication. */
typedef uint64_t route_limit_fn(const struct app *a);

enum {
    ROUTE_AUTH = BIT(0),        /* needs the bearer secret */
    ROUTE_BODY = BIT(1),        /* the handler wants the body, whole; otherwise it is discarded */
    ROUTE_BODY_STREAM = BIT(2), /* the handler runs before the body and calls http_on_body() */
    ROUTE_STREAM = BIT(3),      /* answers with a body of unknown length (documentation only) */
    ROUTE_HEAD = BIT(4),        /* HEAD is allowed where the method is GET */
    ROUTE_ANY_METHOD = BIT(5),  /* `method` is only what the documentation shows */
    ROUTE_FORM = BIT(8),        /* its body is multipart/form-data (documentation only) */
    ROUTE_SIGNED = BIT(7),      /* the dialect may open it without the secret (dialect.h: opens) */
    ROUTE_SOCKET = BIT(9),      /* a WebSocket may bring the secret as a protocol (websocket.h) */
    ROUTE_ANSWERS_MAX = 3,
    ROUTE_FOLLOW = BIT(6), /* a stream without end of its own: shutdown does not wait for it */
};

/* An answer that is not an error. */
struct route_answer {
    int status;         /* 0: there is none */
    const char *schema; /* names of schemas (openapi.c), '|' between; NULL: no JSON */
    const char *type;   /* the media type; NULL: JSON if there is a schema, else no content */
};

struct route {
    const char *method;
    const char *path; /* the pattern */
    api_fn *handler;
    unsigned flags;
    const char *tag;          /* group in the documentation */
    const char *help;         /* one line, lower case, for the documentation */
    route_limit_fn *body_max; /* NULL: the server's default */
    const struct shape *body; /* the JSON body it takes; NULL: none */
    struct route_answer
        answer[ROUTE_ANSWERS_MAX]; /* for the documentation; the first has a status */
    /* For the documentation: names of parameters, '!' behind required ones; a JSON body; what '**'
     * may stand for. */
    const char *query, *example, *example_path;
    /* For the documentation, too: a header that must be sent,
     * "Name: value"; the schema of a JSON body that no
     * shape describes. NULL: none. */
    const char *header, *request;
};

struct route_table {
    const struct route *row; /* borrowed */
    size_t n;
};

/* What a pattern's stars matched: raw, still percent-encoded views into the path. */
struct route_match {
    const char *p[HTTP_PARAMS_MAX];
    size_t len[HTTP_PARAMS_MAX];
    size_t n;
};

/* Does the raw path (percent-encoded, without query, n bytes) match this pattern? */
bool route_path_matches(const char *pattern, const char *path, size_t n, struct route_match *ret);

/*
 * Finds the row for a request. When only the path matches, *ret_route is the
 * first row with that path, which then speaks for its family and its
 * authentication. ret_* are untouched when no path matches.
 */
enum route_found { ROUTE_FOUND, ROUTE_NO_METHOD, ROUTE_NO_PATH };
struct route_hit {
    const struct route *route;
    struct route_match match;
};
enum route_found route_find(const struct route_table *t, const char *method, const char *path,
                            size_t n, struct route_hit *ret);

/* "GET, HEAD, POST": the methods that would have matched this path, in table order. */
enum { ROUTE_ALLOW_MAX = 128 };
void route_allow(const struct route_table *t, const char *path, size_t n,
                 char out[ROUTE_ALLOW_MAX]);

/*
 * Decodes %XX once, in[0..n) to out (n + 1 bytes are enough; may be the same memory); the result
 * is NUL-terminated. False when malformed or when it contains an encoded NUL.
 */
bool route_decode(const char *in, size_t n, char *out);
