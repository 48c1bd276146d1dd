/* SPDX-License-Identifier: MIT */
/*
 * Upstreams: HTTP endpoints of others that code in a sandbox may call as tools (MCP_UPSTREAMS).
 *
 * The file names each endpoint, its arguments and the header lines that it wants. Their secrets are
 * read when the daemon starts and are never shown, logged or sent into a sandbox: a program names a
 * tool and gets a value. Addresses are looked at when a connection is about to be made: loopback
 * and private ones only where the file says so. Redirects are not followed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct app;
struct upstreams;
struct upstream_tool;
struct upstream_call;

enum {
    UPSTREAMS_MAX = 32,
    UPSTREAM_TOOLS_MAX = 64,      /* of one */
    UPSTREAM_NAME_MAX = 64,       /* of one, and of a tool of one */
    UPSTREAM_LINES_MAX = 4,       /* header lines */
    UPSTREAM_SECRET_MAX = 4096,   /* bytes of a header line */
    UPSTREAM_FILE_MAX = 4 << 20,  /* bytes of the file */
    UPSTREAM_VALUE_MAX = 1 << 20, /* bytes of an answer */
    UPSTREAM_TIMEOUT_S = 20,      /* of a call, when nothing else is asked for */
    UPSTREAM_TIMEOUT_MAX_S = 60,
    UPSTREAM_CONNECTIONS_MAX = 32, /* at the same time */
    UPSTREAM_WORDS_MAX = 1000,     /* bytes of a description */
};

/* NULL in *ret: no file is configured. -1: it cannot be used; the words name the place. */
must_check int upstreams_open(struct app *a, struct upstreams **ret, struct err *e);
void upstreams_close(struct upstreams *u); /* NULL is fine; calls under way are forgotten */

/* By "upstream.tool"; u NULL: none. */
struct upstream_tool *upstreams_tool(struct upstreams *u, const char *name, size_t n);
/* The i-th of all; NULL: there are no more. */
struct upstream_tool *upstreams_at(struct upstreams *u, size_t i);
const char *upstream_tool_name(const struct upstream_tool *t);
struct json_value upstream_tool_schema(const struct upstream_tool *t);      /* JSON */
struct json_value upstream_tool_description(const struct upstream_tool *t); /* JSON */

/* `members` of an answer (app/tools/code_run.c): "ok", and "value" or "error"; value_n: bytes of
 * the value. Exactly once, later, unless cancelled; the call is gone then. */
typedef void upstream_done_fn(void *user, const struct buf *members, bool ok, size_t value_n);
/* -1: the arguments are not the tool's, or there are too many calls. */
must_check int upstream_call(struct upstream_tool *t, struct json_value arguments,
                             upstream_done_fn *done, void *user, struct upstream_call **ret,
                             struct err *e);
void upstream_cancel(struct upstream_call *c);
