/* SPDX-License-Identifier: MIT */
/*
 * An execution as server-sent events: `stdout` and `stderr` while the program writes, `progress`
 * for each report that was not overtaken by the next, `result` with the ExecutionResult as the
 * last one.
 *
 * Nothing is kept for a stream: it reads what the run has captured anyway, at its own speed, from
 * the beginning or from where the client says that it was (Last-Event-ID). A slow client slows
 * neither the program nor another client. The execution stays in memory until the stream ends.
 */
#pragma once

#include <stdbool.h>

#include "app/execution/execution.h"
#include "http/server/http_call.h"

struct execution_stream;

/* The client accepts text/event-stream. */
bool execution_stream_wanted(struct http_call *c);
/* For an execution that is not asked for yet; NULL: no memory. Its waiter belongs to the order. */
struct execution_stream *execution_stream_new(struct http_call *c);
struct execution_waiter *execution_stream_waiter(struct execution_stream *s);
void execution_stream_free(struct execution_stream *s); /* only before it has begun */
/* Answers. `waits`: its waiter is one of the execution's. */
void execution_stream_begin(struct execution_stream *s, struct execution *x, bool waits);
