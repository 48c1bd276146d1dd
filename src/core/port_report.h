/* SPDX-License-Identifier: MIT */
/*
 * Port: a control plane that is told of executions, as their requesters are.
 *
 * The adapter knows words, addresses, retries and how nothing gets lost. All of it is called on the
 * loop, and calls back from the loop.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "core/port_run.h"

struct report;      /* one control plane */
struct report_beat; /* a heartbeat under way; the adapter's */

typedef void report_fn(void *user);

enum report_event { REPORT_READY, REPORT_EXITED, REPORT_EVENT_COUNT };

/* For metrics. The first ones only grow. */
struct report_counts {
    uint64_t delivered, failed, rejected, lost, expired, unsaved;
    uint64_t beats, beats_failed;
    uint64_t waiting, spooled, spooled_bytes; /* now */
};

/* What became of an execution. */
struct report_result {
    const struct run_result *run;
    bool succeeded;
    const char *const *artifacts; /* paths */
    size_t artifacts_n;
};

struct report_ops {
    const char *name;
    /* The body of result(). Pure; may run on a worker. */
    void (*write)(const struct report_result *r, struct buf *out);
    /*
     * The result of an execution; the body is taken (emptied). kept() is called
     * once, maybe before this returns: from then on the result survives the end
     * of this process, or it is known, and logged, that it cannot.
     */
    void (*result)(struct report *r, const char *execution_id, struct buf *body, report_fn *kept,
                   void *user);
    /* One attempt. The body is taken. *slot is set while it is under way; an
     * older one that is still there is given up. */
    void (*beat)(struct report *r, const char *execution_id, struct buf *body,
                 struct report_beat **slot);
    void (*beat_cancel)(struct report *r, struct report_beat **slot);
    /* READY is tried until it is delivered, EXITED once; done() (may be NULL)
     * comes afterwards. EXITED ends a READY that is still being tried. */
    void (*event)(struct report *r, enum report_event what, struct buf *body, report_fn *done,
                  void *user);
    /* The end is near: quiet() is called, once, when every result has been
     * delivered or is safe and has had its attempt. */
    void (*settle)(struct report *r, report_fn *quiet, void *user);
    /* Time is up: whatever is under way is given up, then quiet() is called. */
    void (*hurry)(struct report *r);
    void (*counts)(const struct report *r, struct report_counts *ret);
};

/* Adapters put this first in their own struct. */
struct report {
    const struct report_ops *ops;
};
