/* SPDX-License-Identifier: MIT */
/* The member `webhook` of a request: where its result is sent as well. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "core/plan.h"
#include "core/port_report.h"
#include "core/webhook.h"

struct app;
struct webhook;

/* What could not be written whole for want of memory is empty. */
static inline struct bytes buf_whole(const struct buf *b)
{
    return b->failed ? (struct bytes){0} : (struct bytes){b->p, b->n};
}

/* May it be asked for? Pure: any thread may ask. ERR_CALLER. */
must_check int webhook_check(const struct app *a, struct json_value asked, struct err *e);
/* The same, and a place for it. *ret is NULL when none is asked for. ERR_CALLER, ERR_BUSY,
 * ERR_HOST.
 */
must_check int webhook_take(struct app *a, struct json_value asked, struct webhook **ret,
                            struct err *e);
void webhook_free(struct webhook *w); /* gives the place back; NULL is fine */
/* Hands the result over, and frees it. The body is borrowed until kept(), which comes once, perhaps
 * before this returns. */
void webhook_send(struct webhook *w, const char *execution_id, struct bytes body, report_fn *kept,
                  void *user);
