/* SPDX-License-Identifier: MIT */
/*
 * The use case behind POST /v1/functions/call: one function of one piece of code, called once. Its
 * story is the table at the head of call.c; each step is in a file of its name.
 *
 * Whatever goes wrong with the call itself is a result with status "error"; only a body that is no
 * call at all is refused, and a call that finds no place.
 */
#pragma once

#include <sys/queue.h>

#include "app/function/collect.h"
#include "app/function/function_task.h"
#include "function/binding.h"

struct call {
    struct function_task on; /* first */
    struct program program;
    struct binding binding;
    struct collect collect; /* what the run did to the files */
    bool tells;             /* a webhook: it goes on when the client leaves */
    TAILQ_ENTRY(call) link;
};
TAILQ_HEAD(call_list, call);

/* All calls under way. */
struct calls {
    struct call_list active;
    size_t n;
    size_t telling; /* those that have a webhook */
};

void calls_init(struct calls *c);
void calls_done(struct calls *c); /* ends and frees all of them; done() does not come */
void calls_stop_all(struct calls *c, enum end_reason why);
/* Those whose client has left. */
void calls_stop_unattended(struct calls *c, enum end_reason why);

/* -1: it could not be begun. The body is taken in any case. */
must_check int app_call(struct app *a, const struct function_order *o, struct call **ret,
                        struct err *e);
/* The client is gone: ends the call, unless it has a webhook; done() does not come. */
void call_abandon(struct call *c);
/* There is room for items again. */
void call_resume(struct call *c);

/* ---- its steps, in their order; those of function_task.h are between them ---- */

task_begin_fn call_parse;
task_begin_fn call_check;
task_begin_fn call_inspect;
task_begin_fn call_bind;
task_begin_fn call_compile;
task_begin_fn call_run;
task_begin_fn call_collect;
task_begin_fn call_judge;
task_begin_fn call_sync;

static inline struct call *call_of(struct task *t)
{
    return (struct call *)t;
}
/* A run's callback; user is the task. */
run_file_fn call_on_file;
/* Before the run: what it does to the files is to be collected. */
must_check int call_collect_begin(struct call *c, struct err *e);
