/* SPDX-License-Identifier: MIT */
/*
 * One execution: from asked-for to kept. Owned by the registry; whoever asked has a pointer until
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
#include "base/buf.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "core/admission.h"
#include "core/exec_spec.h"
#include "core/port_run.h"
#include "core/port_work.h"

enum { EXECUTION_ID_MAX = 128, REQUEST_ID_MAX = 128 };

enum execution_state {
    EXECUTION_QUEUED,
    EXECUTION_RUNNING,
    EXECUTION_COLLECTING, /* dead inside; files are being copied, the answer is being made */
    EXECUTION_DONE,
    EXECUTION_STATE_COUNT,
};
const char *execution_state_name(enum execution_state s);

struct app;
struct execution;

/* Exactly once, from the loop, never from inside app_execute(). x->json is the answer. */
typedef void execution_done_fn(void *user, struct execution *x);

/* Somebody who waits for the end. Owned by whoever waits. */
struct execution_waiter {
    execution_done_fn *done;
    void *user;
    LIST_ENTRY(execution_waiter) link;
};

struct execution {
    struct app *app; /* borrowed */
    char id[EXECUTION_ID_MAX + 1];
    char session_id[SESSION_ID_MAX + 1]; /* "": none */
    char request_id[REQUEST_ID_MAX + 1]; /* "": none */
    char created_at[CLOCK_ISO_MAX];
    enum execution_state state;
    int lang; /* row of the language table */
    struct limits limits;
    struct ticket ticket;
    struct session *session;            /* shared, while it has a ticket; NULL: none */
    struct shelf_item *dependencies;    /* held while it runs; NULL: none */
    unsigned char digest[SHA256_BYTES]; /* of what was asked for */
    struct place where;                 /* it runs */
    struct plan *plan;                  /* owned, until it runs */
    struct buf code;                    /* if it is to be kept with what it is compiled to */
    struct run *run;                    /* owned */
    struct run_result result;
    struct verdict verdict;
    struct artifacts artifacts;
    size_t keeping;          /* files being copied */
    uint64_t hash_left;      /* bytes that may still be hashed for it */
    struct disk_look *look;  /* owned: at the session's workspace; NULL: none is under way */
    struct event *look_next; /* owned; NULL: never */
    uint64_t look_us;        /* when it began */
    bool ran;                /* a program may have written */
    bool artifact_lost;      /* one could not be kept, and that was logged */
    uint64_t kept_bytes;     /* what it counts for in the registry */
    uint64_t finished_us;    /* monotonic */
    bool run_ended;
    struct buf json;      /* the ExecutionResult */
    struct buf told_json; /* what a control plane is told; until it has been handed over */
    struct work render;
    struct heart heart;
    bool unattended; /* asked for by somebody who does not wait: it goes on whoever leaves */
    LIST_HEAD(execution_waiters, execution_waiter) waiters;
    TAILQ_ENTRY(execution) link;  /* active or finished */
    TAILQ_ENTRY(execution) told;  /* while it is to be concluded */
    SLIST_ENTRY(execution) chain; /* same hash */
};
TAILQ_HEAD(execution_list, execution);

/* Writes the ExecutionResult. Pure; may run on a worker. */
void execution_result_json(const struct execution *x, struct buf *out);
/* The same for a control plane: its eight members and nothing else. */
void execution_told_json(const struct execution *x, struct buf *out);
/* Value of the Server-Timing header. */
void execution_server_timing(const struct execution *x, char out[SERVER_TIMING_MAX]);
