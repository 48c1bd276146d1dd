/* SPDX-License-Identifier: MIT */
/*
 * Callbacks to a control plane over HTTP: the implementation of core/port_report.h.
 *
 * A result is spooled before it is sent; it leaves the spool when the control plane has it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "core/port_report.h"
#include "core/port_work.h"

struct event_base;
struct callback;

struct callback_conf {
    const char *url;    /* of the control plane; slashes at its end do not matter */
    const char *prefix; /* path in front of all of ours */
    const char *token;
    const char *results_path; /* must have been prepared: spool_prepare() */
    uint64_t spool_bytes_max, spool_age_s, spool_retry_ms;
    uint32_t attempts; /* before a result is left to the spool */
    uint32_t base_ms, cap_ms;
    uint32_t connect_ms, answer_ms, connections_max;
    uint32_t beat_ms; /* a heartbeat that takes longer is given up */
};

/* Can requests be sent there? Nobody is asked; callback_open() says the same. */
must_check int callback_check(const char *url, const char *prefix, struct err *e);
/* Log and pool are borrowed. What an earlier life left in the spool is sent from now on. */
must_check int callback_open(struct event_base *base, const struct callback_conf *conf,
                             struct work_pool *pool, const struct log *log, struct report **ret,
                             struct err *e);
/* Close the pool first. NULL is fine. */
void callback_close(struct report *r);

/* ---- policy, pure ---- */

enum callback_verdict {
    CALLBACK_DELIVERED, /* it has it */
    CALLBACK_RETRY,     /* it may have it later */
    CALLBACK_UNKNOWN,   /* it never heard of this execution */
    CALLBACK_REFUSED,   /* it will never take it */
    CALLBACK_VERDICT_COUNT,
};
/* What an answer means; 0 is no answer. */
enum callback_verdict callback_judge(int status);

/* Does the answer to "ready" say that it was taken, but that there is no session it is for? A
 * control plane may write down its session only after it has started the container. */
bool callback_is_unheard(const char *words);

/* How long to wait after the nth attempt (from 1) failed: base, doubled each time, at most cap, and
 * up to a tenth more, by chance (0 ... 65535); at least what the other side asked for, in reason.
 */
enum { CALLBACK_RETRY_AFTER_MAX_S = 300 };
uint64_t callback_delay_ms(uint32_t attempt, uint32_t base_ms, uint32_t cap_ms, uint32_t after_s,
                           uint16_t chance);
