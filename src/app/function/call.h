/* SPDX-License-Identifier: MIT */
/*
 * The use case behind POST /v1/functions/call: one function of one piece of code, called once.
 *
 *   parse ─▶ (inspect) ─▶ bind ─▶ (compile) ─▶ ticket ─▶ run ─▶ collect ─▶ render ─▶ done
 *
 * Whatever goes wrong with the call itself is a result with status "error"; only a body that is no
 * call at all is refused (`refused`).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/execution/execution.h"
#include "app/function/call_mount.h"
#include "app/function/call_sync.h"
#include "app/function/collect.h"
#include "base/buf.h"
#include "core/admission.h"
#include "core/languages.h"
#include "core/port_run.h"
#include "core/port_work.h"
#include "function/args.h"
#include "function/outcome.h"
#include "function/request.h"
#include "function/rights.h"
#include "function/signature.h"

struct app;
struct call;

/* One item of a generator, as JSON. False: no more before call_resume(). */
typedef bool call_item_fn(void *user, size_t index, const char *json, size_t n);
/* Exactly once, from the loop, never from inside app_call(). The call is gone when it returns. */
typedef void call_done_fn(void *user, struct call *c);

enum call_state {
    CALL_PARSING, /* loading mounts, too */
    CALL_INSPECTING,
    CALL_COMPILING,
    CALL_QUEUED,
    CALL_RUNNING,
    CALL_COLLECTING,
    CALL_DONE,
};

struct call {
    struct app *app; /* borrowed */
    char id[EXECUTION_ID_MAX + 1];
    char request_id[REQUEST_ID_MAX + 1];
    enum call_state state;
    struct buf text; /* owned: the body */
    struct call_request request;
    struct err refused;    /* kind ERR_NONE: it was a call */
    struct err load_error; /* of the mounts; kind ERR_NONE: none */
    int lang;              /* row of core/languages.h; -1: unknown */
    struct bytes function;
    char name[CALL_NAME_MAX + 1]; /* when it was found */
    bool body;
    bool wasm; /* the engine */
    int options_at;
    enum call_mode mode;
    struct call_signature *signature; /* owned; NULL: not needed */
    enum signature_source source;
    struct buf inspected;    /* owned: what the signature points into */
    struct json_value found; /* the inspector on the function; p == NULL: nothing */
    struct call_args args;
    struct buf dirs; /* beside /workspace, as in the plan */
    struct limits limits;
    struct place where; /* it runs */
    struct ticket ticket;
    struct call_build *build; /* owned: compiled languages; else NULL */
    struct inspect *inspect;  /* owned: under way; else NULL */
    struct plan *plan;        /* owned, until it runs */
    struct run *run;          /* owned */
    struct run_result result;
    bool ran; /* there are facts of a run */
    bool stopped;
    enum end_reason stop_reason;
    struct call_outcome outcome;
    struct collect collect;
    struct call_tree *tree;    /* held */
    struct buf synced;         /* what the sync did, as JSON; empty: there was none */
    struct call_rights rights; /* what the kernel lets the run write; only where fenced */
    bool fenced;
    bool run_ended;
    bool judged;       /* the outcome is known */
    struct sync *sync; /* owned: changes being written back; else NULL */
    struct buf json;
    struct work work; /* parsing, rendering */
    call_done_fn *done;
    sync_event_fn *event; /* or NULL */
    call_item_fn *item;   /* not NULL: items of a generator one by one */
    size_t items;         /* that came */
    void *user;
    TAILQ_ENTRY(call) link;
};
TAILQ_HEAD(call_list, call);

/* All calls under way. */
struct calls {
    struct call_list active;
    size_t n;
};

void calls_init(struct calls *c);
void calls_done(struct calls *c); /* ends and frees all of them; done() does not come */
void calls_stop_all(struct calls *c, enum end_reason why);

struct call_order {
    struct buf *text;       /* the body; taken */
    const char *request_id; /* for the log; "": none */
    uint64_t asked_us;
    call_done_fn *done;
    sync_event_fn *event; /* of a sync, while it goes on; NULL: nobody listens */
    call_item_fn *item;   /* NULL: the items of a generator are a list */
    void *user;
};
/* Fails only when nothing could be begun: busy, no memory. */
must_check int app_call(struct app *a, const struct call_order *o, struct call **ret,
                        struct err *e);
/* Whoever asked is gone: ends it, done() does not come. */
void call_abandon(struct call *c);
/* There is room for items again. */
void call_resume(struct call *c);

/* The answer. Pure; may run on a worker. */
void call_result_json(struct call *c, struct buf *out);
void call_server_timing(const struct call *c, char out[SERVER_TIMING_MAX]);
