/* SPDX-License-Identifier: MIT */
/*
 * Calls whose changes may still go back to their mounts: `sync.mode` is "manual", or nothing was
 * said. What they changed is kept for a while, bounded in number, bytes and time; the oldest go
 * first. POST /v1/functions/sync writes it back.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "app/call_sync.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

struct app;
struct call;
struct kept_calls;

enum {
    KEPT_CALLS_MAX = 64,
    KEPT_BYTES_MAX = 256 << 20, /* of all together: changes, and what was there before */
};

must_check int kept_calls_new(uint64_t seconds, struct kept_calls **ret, struct err *e);
void kept_calls_free(struct kept_calls *k); /* NULL is fine; no sync is under way */

/* Takes what a delivered call changed, if it may be written back; else nothing. */
void kept_calls_add(struct kept_calls *k, struct call *c);

struct kept_sync; /* one sync under way */
/* json: the report; complete: the changes are not kept any more. Once, from the loop. */
typedef void kept_done_fn(void *user, struct buf *json);

struct kept_order {
    const char *call_id;
    struct json_value rules; /* {onError, rules, allowAbort}: the body */
    sync_event_fn *event;    /* NULL: nobody listens */
    kept_done_fn *done;      /* json is the caller's */
    void *user;
};
/* ERR_ABSENT: not kept (any more); ERR_BUSY: a sync of it is under way. */
must_check int app_sync(struct app *a, const struct kept_order *o, struct kept_sync **ret,
                        struct err *e);
/* Whoever asked is gone: it goes on, done() does not come. */
void kept_sync_abandon(struct kept_sync *s);
