/* SPDX-License-Identifier: MIT */
/*
 * One execution: from asked-for to kept. Owned by the registry; the requester has a pointer until
 * its done callback was called or it detached.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "app/daemon/place.h"
#include "app/daemon/timing.h"
#include "app/execution/artifact.h"
#include "app/execution/heartbeat.h"
#include "app/execution/session.h"
#include "app/execution/verdict.h"
#include "app/task.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "core/exec_spec.h"

enum { EXECUTION_ID_MAX = 128, REQUEST_ID_MAX = 128, EXECUTION_JAIL_MAX = 32 };

struct app;
struct execution;
struct kept_batch;
struct webhook;

/* Exactly once, from the loop, never from inside app_execute(). Its result is final. */
typedef void execution_done_fn(void *user, struct execution *x);

/* A request that waits for the end; owned by it. */
struct execution_waiter {
    execution_done_fn *done;
    void *user;
    LIST_ENTRY(execution_waiter) link;
};

/* The jail, for as long as the execution is kept. */
struct ran_in {
    char jail[EXECUTION_JAIL_MAX];
    unsigned traits; /* enum jail_trait */
};

/* A file that the request brought: unchanged, it is no artifact. */
struct given_file {
    char *path; /* owned */
    char sha256[SHA256_HEX];
};

/* What the verdict of one from an earlier life points to. */
struct restored {
    char *limit, *hint; /* owned; NULL: none */
};

/* Its artifacts on their way to the store. */
struct collecting {
    size_t n;                 /* files being copied */
    uint64_t hash_left;       /* bytes that may still be hashed */
    bool lost;                /* one could not be kept, and that was logged */
    struct given_file *given; /* owned */
    size_t given_n;
};

/* The limits of its session's workspace, while it writes there. */
struct watch {
    struct disk_look *look; /* owned; NULL: none is under way */
    struct event *next;     /* owned; NULL: never */
    uint64_t began_us;      /* the look */
};

/* Follows an execution, done or not, without being waited for. Owned by the follower. */
enum execution_news {
    EXECUTION_OUTPUT,   /* there is more in task.result.out or .err */
    EXECUTION_PROGRESS, /* there is another task.result.progress */
    EXECUTION_ENDED,    /* the result is final: the last one */
};
struct execution_follower {
    void (*news)(void *user, enum execution_news what);
    void *user;
    LIST_ENTRY(execution_follower) link;
};

/* The registry's. */
struct registered {
    uint64_t number;              /* of executions in the order they were asked for, from 1 */
    uint64_t bytes;               /* what it counts for */
    int64_t finished_us;          /* monotonic; below 0: before the host was started */
    bool saved;                   /* on disk, or on its way there */
    bool erased;                  /* not to come back from there, whatever else its file holds */
    struct kept_batch *batch;     /* the file, once it is there */
    uint64_t at;                  /* in it */
    TAILQ_ENTRY(execution) all;   /* by number */
    TAILQ_ENTRY(execution) link;  /* active or finished */
    SLIST_ENTRY(execution) chain; /* same hash */
};

/* Writes what is answered of one that is done. Pure; may run on a worker. */
typedef void execution_write_fn(const struct execution *x, struct buf *out);

/* What others are told of it, until that has been handed over. */
struct outgoing {
    struct buf report;       /* a control plane */
    struct webhook *webhook; /* owned; NULL: none */
    execution_write_fn *write;
    struct buf body; /* of the webhook */
};

/* Readers that outlive its place in the registry. */
struct hold {
    unsigned n;
    bool forgotten; /* to be freed by the last of them */
};

struct execution {
    struct task task;
    struct app *app; /* borrowed */
    char id[EXECUTION_ID_MAX + 1];
    char session_id[SESSION_ID_MAX + 1]; /* "": none */
    char request_id[REQUEST_ID_MAX + 1]; /* "": none */
    char created_at[CLOCK_ISO_MAX];
    int lang;                           /* row of the language table */
    struct session *session;            /* shared, while it has a ticket; NULL: none */
    struct shelf_item *dependencies;    /* held while it runs; NULL: none */
    unsigned char digest[SHA256_BYTES]; /* of what was asked for */
    struct jail *jail;                  /* it runs there */
    struct ran_in ran_in;
    struct buf code; /* if it is to be kept with what it is compiled to */
    struct verdict verdict;
    struct restored restored;
    struct artifacts artifacts;
    struct collecting collecting;
    struct watch watch;
    struct outgoing out;
    struct heart heart;
    struct registered in; /* the registry */
    struct hold hold;
    struct {
        struct egress_policy *policy; /* owned: until it runs */
        struct network *of;           /* owned; NULL: it has none */
    } network;
    struct {
        LIST_HEAD(execution_waiters, execution_waiter) waiters;
        LIST_HEAD(execution_followers, execution_follower) followers;
        bool unattended; /* its request did not wait: it goes on when followers leave */
    } audience;
};
TAILQ_HEAD(execution_list, execution);

/* queued, running, collecting or done */
const char *execution_state_name(const struct execution *x);
static inline bool execution_is_done(const struct execution *x)
{
    return x->task.state == TASK_DONE;
}

void execution_free(struct execution *x); /* for the registry */
/* One that was done in an earlier life, to be filled in; NULL: no memory. */
struct execution *execution_restored(struct app *a);
/* It stays in memory, forgotten or not, until it is dropped as often. */
void execution_hold(struct execution *x);
void execution_drop(struct execution *x);
