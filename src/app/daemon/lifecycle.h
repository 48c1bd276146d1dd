/* SPDX-License-Identifier: MIT */
/*
 * The life of the daemon as a control plane sees it, and the order in which it ends.
 *
 *   stop ─▶ nobody new; executions nobody waits for are ended
 *        ─grace─▶ all executions are ended
 *        ─▶ no request, no execution ─▶ results delivered or safe ─▶ "exited" ─▶ ended()
 *
 * Each arrow has a time limit; the sum is SHUTDOWN_GRACE and LIFECYCLE_AFTER_S.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct app;
struct lifecycle;

enum {
    LIFECYCLE_AFTER_S = 5,        /* after the grace everything must be over */
    LIFECYCLE_DELIVER_S = 3,      /* of these, for results */
    LIFECYCLE_REQUESTS_MS = 1000, /* for requests to be answered after the grace */
};

/* Everything has ended. Called once, from the loop. */
typedef void lifecycle_fn(void *user);

must_check int lifecycle_open(struct app *a, lifecycle_fn *ended, void *user,
                              struct lifecycle **ret, struct err *e);
void lifecycle_close(struct lifecycle *l); /* NULL is fine */

/* The API accepts work on that port. */
void lifecycle_ready(struct lifecycle *l, uint16_t port);
/* The end begins; exit_code is what the process will return. */
void lifecycle_stop(struct lifecycle *l, int exit_code);
/* No request is being answered any more. */
void lifecycle_drained(struct lifecycle *l);

/* "sigterm" for 143 and so on: what a control plane calls it. */
const char *lifecycle_reason(int exit_code);
