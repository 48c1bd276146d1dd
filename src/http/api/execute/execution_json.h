/* SPDX-License-Identifier: MIT */
/* Executions in the words of this API. Pure; may run on a worker that holds the execution. */
#pragma once

#include "app/daemon/timing.h"
#include "app/execution/execution.h"
#include "base/buf.h"
#include "base/jw.h"

enum { EXECUTION_ROW_MAX = 8192 };

/* The ExecutionResult of one that is done. */
void execution_result_json(const struct execution *x, struct buf *out);
/* The Execution: its state, and its result once it is done. */
void execution_json(const struct execution *x, struct buf *out);
/* One of a list: without its result. Of at most EXECUTION_ROW_MAX bytes. */
void execution_row_json(const struct execution *x, struct jw *w);
/* The first, in a buffer of its own, when everything of it is known. */
void execution_result_body(const struct execution *x, struct buf *out);
/* The most bytes of the first two. */
size_t execution_json_room(const struct execution *x);
/* Value of the Server-Timing header. */
void execution_server_timing(const struct execution *x, char out[SERVER_TIMING_MAX]);
