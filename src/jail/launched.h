/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes from our launcher, some of them warm: what the native jail, bwrap and subprocess have
 * in common. The launcher makes each in its way (walls/keeper.h); here they all look the same.
 *
 * A box is one sandbox as the daemon sees it. It is asked for with PREPARE and
 * usable at once, because a job may be written before anybody reads it; the
 * launcher's STARTED, FAILED and DEAD arrive later.
 *
 *      make ──▶ PREPARING ──READY──▶ pooled ──take──▶ taken ──release──▶ released
 *                  └────────────────take────────────────▲                  │
 *      freed when released and the launcher has said DEAD or FAILED ◀──────┘
 *
 * When no other box of the same template is in use and the next one is ready, a released box is
 * closed LEAVE_MS later: taking it down at once would compete for the processor with the client
 * that was just answered.
 *
 * A pooled box waits with its ends open; the ends of a taken one belong to the caller. A box is
 * taken at most once.
 *
 *   launched.c           the port, opening and closing
 *   launched_box.c       one sandbox: made, closed, freed
 *   launched_pool.c      warm sandboxes, made ahead
 *   launched_messages.c  messages from the launcher
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "core/config.h"
#include "core/port_jail.h"
#include "core/templates.h"
#include "jail/jails.h"
#include "jail/outbox.h"
#include "jail/usage.h"

struct log;

enum {
    BUCKETS = 256,
    SLOTS_KNOWN = 4096, /* usage files of slots, by index modulo this */
    PROBE_MS = 15000,
    FAILURE_MAX = 256,
    FAILURES_MAX = 16, /* failures of a template in a row: no more warming for RETRY_MS */
    TRIALS_MAX = 4, /* the same for a lazy template that was never ready: no more warming at all */
    RETRY_MS = 5000,
    REFILL_MS = 1,       /* delay of a refill after a release: the answer is sent first */
    LEAVE_MS = 1,        /* the same for the end of a released sandbox */
    STALE_US = 30000000, /* a sandbox that was idle for longer is handed out first */
    BURST_US = 1000000,  /* an empty pool within this time of a full one is a burst */
    WORDS_MS = 1000,     /* wait for the launcher's text about a sandbox that was not made */
    WORDS_MAX = 8,       /* messages read until it comes */
};

struct box {
    TAILQ_ENTRY(box) bucket, pool;
    struct launched *jail;           /* borrowed */
    struct sandbox sandbox;          /* descriptors are ours while pooled */
    struct event ctl;                /* while pooled */
    bool pooled, ready, taken, over; /* over: the launcher has said FAILED or DEAD */
    bool leaving;                    /* released, its ends still open */
    bool trial;                      /* of a template that was never warm */
    uint32_t slot;
    bool started;
    uint64_t since; /* when it was ready */
    struct usage_base base;
    char failure[FAILURE_MAX];
};
TAILQ_HEAD(boxes, box);

struct pool {
    struct boxes waiting;             /* in the order they were asked for */
    unsigned least, target, n, ready; /* target: how many there should be now, at least `least` */
    unsigned used;                    /* taken and not yet released */
    uint64_t full_us;                 /* when take() last found it full */
    uint64_t missed_us;               /* when take() last found none ready, or it last shrank */
    unsigned failures;                /* in a row */
    bool proven;                      /* one was ready: until then a template is only tried */
    bool asked;                       /* a plan has asked for one: matters for lazy templates */
};

struct launched {
    struct jail jail;
    struct event_base *loop;          /* borrowed */
    const struct log *log;            /* borrowed */
    struct limits limits, persistent; /* of pooled boxes; of those that are persistent */
    int sock;
    struct outbox outbox;
    pid_t guard;
    struct event readable, refill, calm, leave;
    uint64_t next_id;
    unsigned alive;
    bool watch_memory;
    uint64_t pool_memory_mb, pool_calm_s;
    struct boxes by_id[BUCKETS];
    struct boxes leaving;
    struct pool pools[TEMPLATE_COUNT];
    struct usage_files slots[SLOTS_KNOWN];
};

static inline struct launched *launched_of(struct jail *j)
{
    return (struct launched *)j;
}

/* ---- launched.c ---- */

jail_probe_fn launched_probe;
jail_take_fn launched_take;
jail_usage_fn launched_usage;
jail_alone_fn launched_alone;
jail_kill_fn launched_kill;
jail_freeze_fn launched_freeze;
jail_release_fn launched_release;
jail_failure_fn launched_failure;
jail_workspace_fn launched_workspace;
jail_state_fn launched_state;
jail_ask_fn launched_ask;
jail_close_fn launched_close;

#define LAUNCHED_OPS(jail_name)                                                                    \
    {                                                                                              \
        .name = (jail_name), .probe = launched_probe, .take = launched_take,                       \
        .usage = launched_usage, .alone = launched_alone, .kill = launched_kill,                   \
        .freeze = launched_freeze, .release = launched_release, .failure = launched_failure,       \
        .state = launched_state, .workspace = launched_workspace, .ask = launched_ask,             \
        .close = launched_close,                                                                   \
    }

struct launched_kind {
    const struct jail_ops *ops; /* its name is the launcher's, too */
    const char *version;
    bool mounts; /* dependencies */
};

must_check int launched_open(const struct launched_kind *kind, const struct jail_conf *c,
                             struct jail **ret, struct err *e);

/* ---- launched_box.c ---- */

/* Asks the launcher for one. */
must_check int box_new(struct launched *n, const struct sandbox_spec *s, struct box **ret,
                       struct err *e);
struct box *box_find(struct launched *n, uint64_t id);
void box_close(struct box *b); /* closes its ends: everything inside dies */
void box_leave(struct box *b); /* the same, after LEAVE_MS */
/* The event callback of LEAVE_MS. */
void box_on_leave(evutil_socket_t fd, short what, void *user);
void box_unpool(struct box *b);
void box_free(struct box *b);
/* Frees it once it is released and over. */
void box_settle(struct box *b);

/* ---- launched_pool.c ---- */

void pool_lost(struct box *b); /* one that waited in the pool is over */
void pool_refill_later(struct launched *n, unsigned ms);
/* An event callback; user is the struct launched. */
void pool_on_refill(evutil_socket_t fd, short what, void *user);
/* An event callback: lets pools that have grown shrink. */
void pool_on_calm(evutil_socket_t fd, short what, void *user);
/* One that fits and has been waiting, or NULL. */
struct box *pool_take(struct launched *n, const struct sandbox_spec *s);
bool pool_can_warm(const struct launched *n, enum plan_template t);

/* ---- launched_messages.c ---- */

/* Reads all messages of the launcher. An event callback; user is the struct launched. */
void launched_on_readable(evutil_socket_t fd, short what, void *user);
