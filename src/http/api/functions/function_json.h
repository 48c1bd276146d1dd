/* SPDX-License-Identifier: MIT */
/* Results of function calls, of turns of sessions and of syncs as JSON. Pure. */
#pragma once

#include "app/function/function_task.h"
#include "base/clock.h"
#include "base/jw.h"

/* ---- result_json.c ---- */

/* The answer of a call or of a turn: the contract's members first, then those of all results. */
function_render_fn call_result_json;
void call_server_timing(const struct stamps *at, char out[SERVER_TIMING_MAX]);

/* ---- files_json.c ---- */

/* What was changed, as far as it is wanted. */
void files_json(struct jw *w, const struct changes *all, const struct call_request *r,
                int64_t left_out);
/* The most bytes that takes. */
size_t files_room(const struct changes *all);

/* ---- sync_json.c ---- */

/* {synced, failed, skipped, rolledBack, events} */
void sync_report_json(const struct sync_report *r, struct buf *out);
size_t sync_report_room(const struct sync_report *r);
/* One event as the client of a stream hears it: its name, and an object. */
const char *sync_event_name(const struct sync_event *event);
void sync_event_json(const struct mount *m, const struct sync_event *event, struct buf *out);
