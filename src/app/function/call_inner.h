/* SPDX-License-Identifier: MIT */
/* What the files of a call share among themselves; nobody else's business. */
#pragma once

#include "app/function/call.h"
#include "base/jw.h"

/* ---- call.c ---- */

void call_destroy(struct call *c);
must_check int call_plan(struct call *c, struct err *e);
void call_enqueue(struct call *c);
void call_start(void *user); /* its turn has come */
bool call_needs_compiler(const struct call *c);

/* ---- call_end.c ---- */

/* The call itself is wrong: a result with status "error". Never delivers at once. */
void call_fail(struct call *c, const char *type, const char *words);
/* It never ran: somebody or something ended it. */
void call_unstarted(struct call *c, enum end_reason why, const char *words);
/* Everything is known: render and deliver, at once if that may be. */
void call_finish(struct call *c, bool may_deliver);

static inline struct call *call_of_work(struct work *w)
{
    return (struct call *)((char *)w - offsetof(struct call, work));
}

/* ---- call_bind.c ---- */

/* Finds the function, binds the arguments and goes on to the plan. */
void call_bind(struct call *c);
void call_inspect_stop(struct call *c);

/* ---- call_json.c: what the results of all calls have in common ---- */

void call_termination_json(struct jw *w, enum end_reason reason, int signal,
                           const struct call_outcome *o, const char *hint);
void call_isolation_json(struct jw *w, const struct jail *j, bool warm);
void call_timings_json(struct jw *w, const struct stamps *at);
/* What was changed, as far as it is wanted. */
void call_files_json(struct jw *w, const struct changes *all, const struct call_request *r,
                     int64_t left_out);
/* How the files of mounts came in: loading, and why not as it was asked for. */
void call_loading_json(struct jw *w, const struct call_tree *t);
/* The most bytes that takes. */
size_t call_files_room(const struct changes *all);

/* ---- call_collect.c ---- */

must_check int call_collect_init(struct call *c, struct err *e);
/* callbacks of the run */
run_file_fn call_on_file;
run_done_fn call_on_run_done;
