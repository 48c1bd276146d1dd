/* SPDX-License-Identifier: MIT */
/*
 * Calls whose changes may still go back to their mounts: `sync.mode` is "manual", or nothing was
 * said. What they changed is kept for a while, bounded in number, bytes and time; the oldest go
 * first. POST /v1/functions/sync writes it back.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "app/function/call_sync.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

struct app;
struct kept_calls;

enum {
    KEPT_CALLS_MAX = 64,
    KEPT_BYTES_MAX = 256 << 20, /* of all together: changes, and what was there before */
};

must_check int kept_calls_new(uint64_t seconds, struct kept_calls **ret, struct err *e);
void kept_calls_free(struct kept_calls *k); /* NULL is fine; no sync is under way */

/* What a delivered call changed, and everything that points to. */
struct kept_given {
    const char *id;
    struct call_tree *tree;
    struct changes *changes;
    struct call_file *old;        /* as many as changes, or NULL */
    struct call_request *request; /* the same for what they point into; NULL: nothing */
    struct buf *text;
    size_t bytes; /* beside new contents */
};
/* Is there anything that could go back? */
bool kept_calls_want(const struct kept_given *g);
/* Takes it: the changes are empty then, the rest is the keeper's. False: it stays the caller's. */
must_check bool kept_calls_add(struct kept_calls *k, const struct kept_given *g);

struct kept_sync; /* one sync under way */
/* Writes the answer; pure, on a worker. */
typedef void kept_render_fn(const struct sync_report *r, struct buf *out);
/* json is taken. Once, from the loop. */
typedef void kept_done_fn(void *user, struct buf *json);

struct kept_order {
    const char *call_id;
    struct json_value rules; /* {onError, rules, allowAbort}: the body */
    sync_event_fn *event;    /* NULL: none are wanted */
    kept_render_fn *render;
    kept_done_fn *done;
    void *user;
};
/* ERR_ABSENT: not kept (any more); ERR_BUSY: a sync of it is under way. */
must_check int app_sync(struct app *a, const struct kept_order *o, struct kept_sync **ret,
                        struct err *e);
/* The client is gone: the sync goes on, done() does not come. */
void kept_sync_abandon(struct kept_sync *s);
