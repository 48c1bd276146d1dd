/* SPDX-License-Identifier: MIT */
/*
 * Sandboxes from our launcher, some of them warm: what the native jail, bwrap and subprocess have
 * in common. The launcher makes each in its way (walls/keeper.h); from here they look the same.
 *
 * A box is one sandbox as the daemon sees it. It is asked for with PREPARE and
 * usable at once, because a job may be written before anybody reads it; the
 * launcher's STARTED, FAILED and DEAD arrive later.
 *
 *      make ──▶ PREPARING ──READY──▶ pooled ──take──▶ taken ──release──▶ released
 *                  └────────────────take────────────────▲                  │
 *      freed when released and the launcher has said DEAD or FAILED ◀──────┘
 *
 * One that is released while nobody else uses one of its kind, and the next is ready, leaves a
 * moment later: its end would take the processor on which whoever was just answered is about to
 * wake.
 *
 * A pooled box waits with its ends open; a taken one belongs to the caller. No
 * box is ever taken twice.
 *
 *   launched.c        the port, opening and closing
 *   native_box.c      one sandbox: its ends and its end
 *   native_pool.c     warm ones, made ahead
 *   native_launcher.c what the launcher tells
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
    FAILURES_MAX = 16, /* of a template in a row, without a success: no more warming for a while */
    TRIALS_MAX = 4,    /* the same, of one that was never warm and that few want: no more warming */
    RETRY_MS = 5000,
    REFILL_MS = 1,       /* whoever was answered goes first */
    LEAVE_MS = 1,        /* the same for the end of the sandbox */
    STALE_US = 30000000, /* who has waited so long in a pool is next */
    BURST_US = 1000000,  /* who finds none ready so soon after the pool was full came with many */
    WORDS_MS = 1000,     /* the launcher's words for a sandbox that was not made */
    WORDS_MAX = 8,       /* messages until they come */
};

struct box {
    TAILQ_ENTRY(box) bucket, pool;
    struct native *jail;             /* borrowed */
    struct sandbox sandbox;          /* descriptors are ours while pooled */
    struct event ctl;                /* while pooled */
    bool pooled, ready, taken, over; /* over: the launcher has nothing more to say */
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
    uint64_t full_us;                 /* when somebody last found it full */
    uint64_t missed_us;               /* when somebody found none ready, or the pool last shrank */
    unsigned failures;                /* in a row */
    bool proven;                      /* one was ready: until then a template is only tried */
    bool asked;                       /* somebody has wanted one: matters for lazy templates */
};

struct native {
    struct jail jail;
    struct event_base *loop; /* borrowed */
    const struct log *log;   /* borrowed */
    struct limits limits;    /* of pooled boxes */
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

static inline struct native *native_of(struct jail *j)
{
    return (struct native *)j;
}

/* ---- launched.c ---- */

jail_probe_fn launched_probe;
jail_take_fn launched_take;
jail_usage_fn launched_usage;
jail_alone_fn launched_alone;
jail_kill_fn launched_kill;
jail_release_fn launched_release;
jail_failure_fn launched_failure;
jail_measure_fn launched_measure;
jail_state_fn launched_state;
jail_ask_fn launched_ask;
jail_close_fn launched_close;

#define LAUNCHED_OPS(jail_name)                                                                    \
    {                                                                                              \
        .name = (jail_name), .probe = launched_probe, .take = launched_take,                       \
        .usage = launched_usage, .alone = launched_alone, .kill = launched_kill,                   \
        .release = launched_release, .failure = launched_failure, .state = launched_state,         \
        .measure = launched_measure, .ask = launched_ask, .close = launched_close,                 \
    }

struct launched_kind {
    const struct jail_ops *ops; /* its name is the launcher's, too */
    const char *version;
    bool mounts; /* dependencies, and has a loopback of its own for a relay */
};

must_check int launched_open(const struct launched_kind *kind, const struct jail_conf *c,
                             struct jail **ret, struct err *e);

/* ---- native_box.c ---- */

/* Asks the launcher for one. */
must_check int box_new(struct native *n, const struct sandbox_spec *s, struct box **ret,
                       struct err *e);
struct box *box_find(struct native *n, uint64_t id);
void box_close(struct box *b); /* its ends: whatever lives inside dies */
void box_leave(struct box *b); /* the same, in a moment */
/* An event callback: the moment is over. */
void box_on_leave(evutil_socket_t fd, short what, void *user);
void box_unpool(struct box *b);
void box_free(struct box *b);
/* Frees it when both sides are through with it. */
void box_settle(struct box *b);

/* ---- native_pool.c ---- */

void pool_lost(struct box *b); /* one that waited in the pool is over */
void pool_refill_later(struct native *n, unsigned ms);
/* An event callback; user is the struct native. */
void pool_on_refill(evutil_socket_t fd, short what, void *user);
/* An event callback: lets pools that have grown shrink. */
void pool_on_calm(evutil_socket_t fd, short what, void *user);
/* One that fits and has been waiting, or NULL. */
struct box *pool_take(struct native *n, const struct sandbox_spec *s);
bool pool_can_warm(const struct native *n, enum plan_template t);

/* ---- native_launcher.c ---- */

/* Reads everything the launcher has said. An event callback; user is the struct native. */
void launcher_on_readable(evutil_socket_t fd, short what, void *user);
