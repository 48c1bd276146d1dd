/* SPDX-License-Identifier: MIT */
/* The member `webhook` of a request: where its result is sent as well. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "core/plan.h"
#include "core/webhook_help.h"
#include "net/webhook.h"

struct app;

/* What could not be written whole for want of memory is empty. */
static inline struct bytes buf_whole(const struct buf *b)
{
    if (b->failed)
        return (struct bytes){0};
    return (struct bytes){b->p, b->n};
}

/* May it be asked for? Pure: any thread may ask. ERR_CALLER. */
must_check int webhook_check(const struct app *a, struct json_value asked, struct err *e);
/* The same, and a place for it. *ret is NULL when none is asked for. ERR_CALLER, ERR_BUSY,
 * ERR_HOST.
 */
must_check int webhook_take(struct app *a, struct json_value asked, struct webhook **ret,
                            struct err *e);
/* Said in what is sent when the daemon is killed before there is a result. */
#define WEBHOOK_KILLED "the service was killed before this had ended"
