/* SPDX-License-Identifier: MIT */
/*
 * HTTP as the commands speak it to one daemon, by libcurl.
 *
 *   http_ask()                              one request, waits for its end
 *   http_start() … http_wait() … done()     several side by side, and descriptors of the caller's
 *
 * Bodies stream in both directions: what the caller's functions do not keep is kept nowhere. The
 * secret goes to the daemon and nowhere else; no proxy is used and no redirect followed. Nothing
 * limits how long an answer takes unless a request says so: runs are allowed to be long.
 *
 * Errors are words for people: ERR_CALLER (called wrongly), ERR_ABSENT (nobody answers there),
 * ERR_BUSY (it took too long), ERR_HOST (all else). An answer of any status is no error here.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/daemon_at.h"

struct http;          /* one daemon */
struct http_exchange; /* one request under way */

enum {
    HTTP_LINES_MAX = 8, /* header lines of one request */
    HTTP_TYPE_MAX = 128,
    HTTP_CONNECT_MS = 10000,
    HTTP_KEPT_MAX = 256 << 20, /* bytes of an answer that http_ask() keeps */
};

/* How an answer begins. Borrowed for the length of the call. */
struct http_head {
    int status;
    char type[HTTP_TYPE_MAX]; /* Content-Type without parameters, lower case; "": none */
    int64_t length;           /* -1: not said */
};

/* What became of a request. Borrowed for the length of the call. */
struct http_end {
    int status;          /* 0: there was no answer */
    bool whole;          /* all of it came */
    const struct err *e; /* why not; NULL if `whole` */
};

/* A line of the head of the answer: name in lower case, value without spaces around it. */
typedef void http_line_fn(void *user, const char *name, const char *value);
/* 0; -1: no more is wanted, the exchange ends. */
typedef int http_head_fn(void *user, const struct http_head *head);
typedef int http_part_fn(void *user, const char *p, size_t n);
/* Bytes of the body of the request: how many, 0 at its end, -1 to give up. */
typedef ssize_t http_read_fn(void *user, char *p, size_t room);
/* Once, last, unless cancelled. The exchange is gone afterwards; others may be started in it. */
typedef void http_done_fn(void *user, const struct http_end *end);

/* Borrowed until the exchange has ended. */
struct http_request {
    const char *method;                /* NULL: GET, or POST if there is a body */
    const char *path;                  /* begins with a slash; may have a query; already encoded */
    const char *type;                  /* of the body; NULL: application/json */
    const char *lines[HTTP_LINES_MAX]; /* "Name: value" each; NULL ends them */
    const char *body;                  /* NULL: none */
    size_t body_n;
    http_read_fn *read;  /* in place of `body` */
    int64_t read_n;      /* bytes it gives; -1: nobody knows */
    uint32_t connect_ms; /* 0: HTTP_CONNECT_MS */
    uint32_t silent_ms;  /* no byte moves for so long: given up. 0: however long */
    uint32_t whole_ms;   /* 0: however long */
    http_line_fn *line;  /* these may be NULL */
    http_head_fn *head;
    http_part_fn *part;
    http_done_fn *done;
    void *user;
};

must_check int http_open(const struct daemon_at *at, struct http **ret, struct err *e);
/* Ends what is under way; nothing is called. NULL is fine. */
void http_close(struct http *h);

/* ---- one after the other ---- */

struct http_answer {
    int status;
    char type[HTTP_TYPE_MAX];
    struct buf body; /* owned; what part() was not given */
};
void http_answer_done(struct http_answer *a);
/* 0: there is an answer, of whatever status. The request's functions are called on the way, where
 * there are any; the body of an answer that is not 2xx is kept in the answer in any case. */
must_check int http_ask(struct http *h, const struct http_request *r, struct http_answer *ret,
                        struct err *e);
/* What an answer that is not 2xx says, as one line for people, with what may help: "there is no
 * sandbox 'x' (404); leave it out …". */
void http_answer_words(const struct http_answer *a, struct err *e);

/* ---- side by side ---- */

must_check int http_start(struct http *h, const struct http_request *r, struct http_exchange **ret,
                          struct err *e);
/* done() will not come; the connection is closed. NULL is fine. Not from its own functions: they
 * answer -1. */
void http_cancel(struct http_exchange *x);
size_t http_under_way(const struct http *h);
/* Moves what is under way, until something has, one of the descriptors is ready (revents), or so
 * many milliseconds have passed (-1: however long). */
must_check int http_wait(struct http *h, struct pollfd *fds, size_t fds_n, int timeout_ms,
                         struct err *e);
