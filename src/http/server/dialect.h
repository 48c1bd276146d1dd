/* SPDX-License-Identifier: MIT */
/*
 * A dialect: one family of endpoints and how it speaks. The server knows requests, bodies and
 * answers. Which requests belong to a family, where they carry the secret, how a body is decoded
 * and how a result or an error looks is the dialect's. Adding one touches its own folder and one
 * row of api_dialects[].
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "core/shape.h"
#include "http/server/h1.h"
#include "http/server/http_call.h"
#include "http/server/route.h"

enum {
    DIALECT_REQUEST_ID = BIT(0), /* answers carry X-Request-Id */
    DIALECT_ALLOW = BIT(1),      /* 405 carries Allow */
    DIALECT_KEEP_ALIVE = BIT(2), /* streams say Connection: keep-alive */
    DIALECT_ELSEWHERE = BIT(3),  /* its paths are described by others: not in our documentation */
    DIALECT_CLAIMED = BIT(4),    /* only what it claims is its own: its paths alone find nothing */
};

struct dialect {
    const char *name;
    const char *title, *about; /* for the documentation */
    struct route_table routes;
    /* Requests that are its own whatever their path, for example by their Host or by a header.
     * Asked before any path is looked at; only its rows serve them. NULL: none. */
    bool (*claims)(const struct app *a, const struct h1_head *h);
    /* Looks at the head of a request before its route, its secret and its body. False: it has
     * answered. NULL: all are admitted. */
    bool (*admit)(struct http_call *c);
    /* Does a request open by itself what it asks for, for example by a signature in its URL? Asked
     * in place of the secret, for rows with ROUTE_SIGNED. NULL: none does. */
    bool (*opens)(struct http_call *c);
    const char *prefix; /* paths that no row matches but that are its own, too; NULL: none */
    unsigned traits;
    bool lenient; /* bodies are decoded leniently (core/shape.h) */
    /* The secret that a request carries, or NULL. NULL: the bearer token. */
    const char *(*secret)(const struct http_call *c);
    /* Answers with a result that is one JSON value. NULL: as application/json, with a newline. */
    void (*reply)(struct http_call *c, int status, struct buf *json);
    /* Answers a status that the server itself refuses with. words: what is wrong with this request;
     * NULL: what the status says. */
    void (*refuse)(struct http_call *c, int status, const char *words);
    /* Answers an error of a use case. */
    void (*error)(struct http_call *c, const struct err *e);
    /* Answers a body that could not be decoded. */
    void (*issues)(struct http_call *c, const struct shaping *s);
};

/* The endpoint whose path is nearest to that of a call that none has: "POST /execute". False: none
 * is near. */
enum { DIALECT_NEAREST_MAX = 128 };
bool dialect_nearest(const struct http_call *c, char out[DIALECT_NEAREST_MAX]);
/* The methods that the path of a call has: "GET, DELETE". */
void dialect_allow(const struct http_call *c, char out[DIALECT_NEAREST_MAX]);

/* Decodes the body of a call as its dialect does; the checks get http_app() as `user`. False:
 * answered. The shaping is to be released in both cases. */
bool dialect_decode(struct http_call *c, const struct shape *shape, void *target,
                    struct shaping *s);
