/* SPDX-License-Identifier: MIT */
/*
 * Webhooks: results on their way to addresses that requests have named.
 *
 * A message is on disk before anything is answered, in a spool (spool.h) of its own, and is tried
 * until it has been taken, is refused for good, or is too old. Each attempt is signed, as Standard
 * Webhooks describe it: Webhook-Id, Webhook-Timestamp and Webhook-Signature.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "core/plan.h"
#include "core/port_report.h"
#include "core/port_work.h"
#include "net/webhook_rules.h"

struct event_base;
struct webhook; /* one message */
struct webhooks;

enum { WEBHOOK_SECRET_MAX = 512, WEBHOOK_ID_MAX = 33 };

struct webhooks_conf {
    const char *path;   /* prepared: spool_prepare() */
    const char *hosts;  /* WEBHOOK_HOSTS */
    const char *secret; /* of messages without one of their own; "": none */
    uint64_t bytes_max, age_max_s;
    uint32_t count_max;
    uint32_t base_ms, cap_ms; /* pauses between attempts */
    uint32_t answer_ms, connections_max;
};

/* Where to. Borrowed. */
struct webhook_target {
    const char *url;
    const char *secret; /* NULL: the operator's */
};

struct webhook_counts {
    uint64_t delivered, failed, unknown, given_up, lost; /* only grow */
    uint64_t waiting, bytes;                             /* now */
};

/* Log and pool are borrowed. What an earlier life has left is sent from now on. */
must_check int webhooks_open(struct event_base *base, const struct webhooks_conf *conf,
                             struct work_pool *pool, const struct log *log, struct webhooks **ret,
                             struct err *e);
/* Close the pool first. NULL is fine. */
void webhooks_close(struct webhooks *w);

/* May a message go there? Pure: any thread may ask. w may be NULL: nowhere. ERR_CALLER. */
must_check int webhooks_check(const struct webhooks *w, const struct webhook_target *to,
                              struct err *e);
/* The same, and a place for the message that will come. ERR_CALLER, ERR_BUSY, ERR_HOST. */
must_check int webhooks_hold(struct webhooks *w, const struct webhook_target *to,
                             struct webhook **ret, struct err *e);
/* There will be none. NULL is fine. */
void webhook_drop(struct webhook *h);
/* What is sent if this process is killed before webhook_send(); taken. */
void webhook_promise(struct webhook *h, const char *execution_id, struct buf *body);
/*
 * The message: a JSON object, or nothing, if it could not be made. The webhook is taken, the body
 * borrowed until kept(), which is called once, perhaps before this returns: the message survives
 * the end of this process, or it is logged that it cannot. execution_id: for the log.
 */
void webhook_send(struct webhook *h, const char *execution_id, struct bytes body, report_fn *kept,
                  void *user);

/* The end is near: quiet() is called, once, when no attempt is under way or due. */
void webhooks_settle(struct webhooks *w, report_fn *quiet, void *user);
/* Attempts that are under way are given up; quiet() is called. */
void webhooks_hurry(struct webhooks *w);
void webhooks_count(const struct webhooks *w, struct webhook_counts *ret);

/* ---- the signature, pure ---- */

/* "v1," and the base64 of HMAC-SHA256 over "id.timestamp.body". A secret that begins with "whsec_"
 * is the base64 of the key; any other is the key itself. -1: it is no such base64, or no memory. */
enum { WEBHOOK_SIGNATURE_MAX = 64 };
must_check int webhook_sign(const char *secret, const char *id, int64_t timestamp,
                            struct bytes body, char out[WEBHOOK_SIGNATURE_MAX]);
