/* SPDX-License-Identifier: MIT */
/* What the files of a call share among themselves; nobody else's business. */
#pragma once

#include "app/call.h"
#include "base/jw.h"

/* ---- call.c ---- */

/* The call itself is wrong: a result with status "error". Never delivers at once. */
void call_fail(struct call *c, const char *type, const char *words);
/* It never ran: somebody or something ended it. */
void call_unstarted(struct call *c, enum end_reason why, const char *words);
/* Everything is known: render and deliver, at once if that may be. */
void call_finish(struct call *c, bool may_deliver);
/* Which directories beside /workspace are wanted; finds them once. */
must_check int call_dirs_find(struct call *c, struct err *e);
must_check int call_plan(struct call *c, struct err *e);
void call_enqueue(struct call *c);
bool call_needs_compiler(const struct call *c);

/* ---- call_bind.c ---- */

/* Finds the function, binds the arguments and goes on to the plan. */
void call_bind(struct call *c);
void call_inspect_stop(struct call *c);

/* ---- call_json.c: what the results of all calls have in common ---- */

void call_termination_json(struct jw *w, enum end_reason reason, int signal,
                           const struct call_outcome *o, const char *hint);
void call_isolation_json(struct jw *w, const struct jail *j, bool warm);
void call_timings_json(struct jw *w, const struct stamps *at);

/* ---- call_collect.c: callbacks of the run ---- */

run_file_fn call_on_file;
run_done_fn call_on_run_done;

/* ---- call_denied.c ---- */

/* onPermissionDenied "throw": what was refused inside, or found among the changes, is the error. */
void call_take_denied(struct call *c);
