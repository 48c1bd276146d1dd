/* SPDX-License-Identifier: MIT */
/*
 * Server-sent events over a call: `event: NAME\ndata: JSON\n\n`.
 *
 * The head goes out at once, so a client knows that it is connected before the
 * first event. There are no heartbeats: some clients measure silence. With a
 * slow reader the producer pauses: sse_send() says when, http_on_drain() says
 * when to go on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/server/http_call.h"

struct sse {
    struct http_call *call; /* borrowed */
    uint64_t sent, dropped; /* events */
    bool full;              /* the queue is above the high mark */
};

/* Answers 200 and begins the stream. Extra headers may be set before. */
void sse_begin(struct sse *s, struct http_call *c);
/* The same, and proxies are told not to compress it: they would hold events back. */
void sse_begin_unchanged(struct sse *s, struct http_call *c);

/*
 * Queues one event. `id` may be NULL; `json` may span lines. False: the queue
 * is above its mark, and a producer that can wait should, until the drain
 * callback.
 */
bool sse_send(struct sse *s, const char *event, const char *id, const char *json, size_t n);
/* The same for one item of a generator; its number is the id. */
bool sse_send_item(struct sse *s, size_t index, const char *json, size_t n);
/* From the call's drain callback: the queue has room again. */
void sse_drained(struct sse *s);
void sse_end(struct sse *s);

/* Where a client that saw event `last` (Last-Event-ID, NULL: it sent none) goes on: the number
 * after it, or 0, from the beginning, for anything that is no number of ours. */
uint64_t sse_resume_at(const char *last);
