/* SPDX-License-Identifier: MIT */
/*
 * An HTTP client on the loop: POST with a body, an answer of which the status and the first words
 * matter.
 *
 * It follows no redirect, speaks http and https and nothing else, uses no proxy, keeps connections,
 * and reads a bounded answer. A header value that is a secret stays in here and in libcurl.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan.h"
#include "net/http_url.h"

struct event_base;
struct http_client;
struct http_post; /* one request under way */

enum {
    HTTP_ANSWER_MAX = 64 * 1024, /* bytes of head and body of an answer, together */
    HTTP_ERROR_MAX = 128,
    HTTP_WORDS_MAX = 512, /* of its body: kept */
    HTTP_LINES_MAX = 4,   /* header lines of one request */
};

/* May a connection be made to this address? Asked once names are resolved, of each address that
 * would be tried; `user` is that of the request. */
struct sockaddr;
typedef bool http_allow_fn(void *user, const struct sockaddr *to);

struct http_client_conf {
    const char *bearer;       /* NULL or "": no Authorization */
    uint32_t connections_max; /* at the same time; further requests wait */
    uint32_t connect_ms;
    uint32_t answer_ms;   /* from the connection to the end of the answer, for a small body */
    http_allow_fn *allow; /* NULL: any address */
};

/* What became of a request. Borrowed for the length of the call. */
struct http_answer {
    int status;             /* 0: there was no answer, or not all of it */
    uint32_t retry_after_s; /* 0: not said */
    const char *error;      /* "" or why there was no answer */
    const char *words;      /* the beginning of its body; NULL: there was no answer */
    struct bytes body;      /* all of it, if that was asked for */
    bool too_long;          /* there was more than was asked for */
    bool sent;              /* something of the request was: it may have been understood */
};

/* Exactly once, from the loop, unless cancelled. The request is gone afterwards. */
typedef void http_post_fn(void *user, const struct http_answer *a);

/* One request. All borrowed until it has ended. */
struct http_ask {
    const char *url;
    const char *method; /* NULL: POST. Without a body none is sent */
    size_t body_max;    /* bytes of the body of the answer that are kept; 0: words are enough */
    uint32_t answer_ms; /* 0: the client's */
    const char *idempotency_key;       /* NULL: none */
    const char *lines[HTTP_LINES_MAX]; /* header lines beside the usual ones; NULL ends them */
    struct bytes body;                 /* application/json */
    http_post_fn *done;
    void *user;
};

must_check int http_client_open(struct event_base *base, const struct http_client_conf *conf,
                                struct http_client **ret, struct err *e);
/* Cancels what is under way. NULL is fine. */
void http_client_close(struct http_client *c);

must_check int http_client_post(struct http_client *c, const struct http_ask *ask,
                                struct http_post **ret, struct err *e);
/* done() will not come. The connection is closed if anything was sent. NULL is fine. */
void http_post_cancel(struct http_post *p);
