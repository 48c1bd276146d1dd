/* SPDX-License-Identifier: MIT */
/*
 * What a function call, the creation of a function session and a turn of one have in common: a
 * task (app/task.h) about a program, that ends with a result for the one who asked.
 *
 * A result is a value. How it looks on the wire is decided by the API, which brings a function
 * that renders it; that function is the last step, beside the loop where the result is large.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/execution/execution.h"
#include "app/function/call_sync.h"
#include "app/function/program.h"
#include "app/packages/sets.h"
#include "app/task.h"
#include "function/changes.h"
#include "function/outcome.h"
#include "function/signature.h"

struct function_task;
struct inspect;
struct inspect_answer;
struct turn_facts;
struct webhook;

/* What became of it. Everything is borrowed until the answer is over. */
struct call_result {
    const char *id; /* call_... */
    struct call_outcome outcome;
    bool failed;                  /* the outcome is that what was asked for is wrong */
    bool ran;                     /* otherwise; or ended before it began, by others */
    const struct run_result *run; /* what the program wrote, used, and when */
    const struct call_request *request;
    int lang;  /* row of core/languages.h; -1: unknown */
    bool wasm; /* the engine */
    const struct jail *jail;
    struct bytes function; /* p == NULL: not known */
    enum signature_source source;
    enum call_mode mode;              /* AUTO: not known */
    const struct changes *changes;    /* NULL: not known */
    int64_t left_out;                 /* files that were not shown */
    const struct call_tree *tree;     /* NULL: mounts are not known */
    const struct sync_report *synced; /* NULL: nothing was to go back */
    bool streamed;
    size_t items;     /* that came, if it was streamed */
    size_t shown_max; /* characters of each text for who renders it; 0: all of it is wanted */
    const struct turn_facts *session; /* NULL: it is no turn of one */
};

/* Writes the answer. Pure; may run on a worker. */
typedef void function_render_fn(const struct call_result *r, struct buf *out);
/* One item of a generator, as JSON. False:
 * no more before function_resume(). */
typedef bool function_item_fn(void *user, size_t index, const char *json, size_t n);
/* Exactly once, from the loop, never from inside the function that was given it. json is taken. The
 * task must not be touched afterwards. */
typedef void function_done_fn(void *user, const struct call_result *r, struct buf *json);
/* The same, for what was not asked for rightly, or found no room. */
typedef void function_refused_fn(void *user, const struct err *e);

struct function_order {
    struct buf *text;       /* the body; taken */
    const char *request_id; /* for the log; "": none */
    uint64_t asked_us;
    function_render_fn *render;
    function_done_fn *done; /* NULL: the client is gone */
    function_refused_fn *refused;
    function_item_fn *item;    /* not NULL: items of a generator one by one */
    sync_event_fn *event;      /* of changes that go back, while they do; or NULL */
    run_progress_fn *progress; /* JSON that the program tells while it runs, unchecked; or NULL */
    size_t shown_max;          /* of the result; 0: all of it */
    uint64_t memory_max;       /* bytes, if that is less than is configured; 0: as configured */
    void *user;
};

struct function_task {
    struct task task; /* first */
    struct app *app;  /* borrowed */
    char id[EXECUTION_ID_MAX + 1];
    struct program *program; /* borrowed */
    struct inspect *inspect; /* owned: under way; else NULL */
    struct err error;        /* of what a worker did; kind ERR_NONE: none */
    struct err
        uninspected; /* why there is no inspection; kind ERR_NONE: there is, or none was made */
    struct package_waiter packages; /* while they are being installed */
    struct sync *sync;              /* owned: changes that went back or do; else NULL */
    struct call_result result;
    struct buf json;             /* the answer */
    struct webhook *webhook;     /* owned: the answer is sent there, too; NULL: none */
    struct function_order order; /* without the body */
    char request_id[REQUEST_ID_MAX + 1];
};

static inline struct function_task *function_of(struct task *t)
{
    return (struct function_task *)t;
}

/* Everything else is zero already. */
void function_init(struct function_task *f, struct app *a, const struct task_kind *kind,
                   struct program *p, const struct function_order *o);
void function_done(struct function_task *f);
/* The client is gone: no callback of the order comes any more. */
void function_forget(struct function_task *f);

/* ---- for steps ---- */

/* What was asked for is wrong: that is the outcome. Returns TASK_END. */
enum task_go function_fail(struct function_task *f, const struct err *e);
/* Does a part of a step, on a worker where it takes long: fn sets f->error, or t->refused. */
enum task_go function_do(struct function_task *f, task_fn *fn, bool beside);
/* Looks at the code and copies the answer; f->uninspected otherwise. */
enum task_go function_inspect(struct function_task *f, struct err *e);
/* Makes the program of a compiled language, if there is none of the same text. */
enum task_go function_compile(struct function_task *f);

/* ---- whole steps ---- */

task_begin_fn function_packages; /* installs and holds what the program asks for */
task_begin_fn function_load;     /* loads what is in the mounts */
task_begin_fn function_compiled; /* the compiler has ended */
task_begin_fn function_render;   /* the answer */
task_begin_fn function_webhook;  /* that is handed over, if one was asked for */
task_stop_fn inspect_give_up, packages_give_up;

/* Hands over the answer. */
void function_answer(struct function_task *f);
/* Its answer takes long to write down. */
bool function_is_large(const struct function_task *f);
/* One item of a stream. */
enum function_item {
    ITEM_NONE, /* it is no JSON */
    ITEM_TAKEN,
    ITEM_LAST, /* the same, but there is no room for another one now */
};
enum function_item function_item(struct function_task *f, const char *json, size_t n);
/* Writes changes back; on_synced() when that is over. */
enum task_go function_sync(struct function_task *f, struct call_tree *tree,
                           const struct changes *changes);
