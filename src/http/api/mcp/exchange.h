/* SPDX-License-Identifier: MIT */
/*
 * One request of the Model Context Protocol being answered.
 *
 * It is answered as JSON when that is quick, else, where the client takes events, as a stream of
 * them whose last one is the answer. In the modern era a client that leaves cancels its request; in
 * the handshake era only `notifications/cancelled` does, and the work goes on without it.
 *
 *   PENDING ──1 s──▶ STREAMING
 *      └── answered, cancelled ──▶ freed
 *
 * The events of a session's streams have numbers and are kept for a while (app/mcp/replay.h), so
 * that a client which has lost its connection can go on where it was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/mcp/sessions.h"
#include "base/jw.h"
#include "http/api/mcp/rpc.h"
#include "http/server/http_call.h"
#include "http/server/sse.h"

enum {
    MCP_ANSWER_MAX = 16 << 20, /* bytes of one answer */
    MCP_SOON_MS = 1000,        /* an answer that takes longer comes as an event */
    MCP_OWN_S = 10,            /* a program that told its progress is heard again after so long */
    MCP_QUIET_S = 15,          /* a comment is sent after so long without an event */
    MCP_META_MAX = 256,
    MCP_PROGRESS_MAX = 200, /* characters of the text of a progress notification */
};

struct event;
struct mcp_exchange;

/* What works on a request that is not answered at once. */
struct mcp_worker {
    /* Nothing is wanted any more; the exchange is gone when it returns. NULL: there is none. */
    void (*stop)(void *user);
    /* What it does now, for a progress notification. NULL, or returns NULL: nothing to tell. */
    const char *(*doing)(void *user);
    void *user;
};

/* The progress that a program tells: it takes the place of seconds. */
struct mcp_own {
    bool told;
    double base; /* second that was told last before */
    double total;
    uint64_t at_us;
    char words[MCP_PROGRESS_MAX + 1];
};

struct mcp_exchange {
    struct mcp_request request; /* in its session, while it is under way */
    struct app *app;
    struct http_call *call; /* NULL: the client has left, and the work goes on */
    struct buf body;        /* owned: `message` points into it */
    struct rpc_message message;
    bool modern;
    bool takes_json, takes_events;
    bool streaming;
    struct sse sse;
    struct event *timer; /* owned */
    uint64_t began_us, told_us;
    double progress;          /* the last one that was told */
    struct mcp_own own;       /* what the program told itself */
    struct json_value token;  /* of progress notifications; p == NULL: none are wanted */
    struct mcp_worker worker; /* while it waits for one */
    enum mcp_outcome outcome;
    uint32_t stream,
        events; /* number of its stream in its session, from 1 on, and of its last event */
};

/* The body is taken from the call. NULL: out of memory, and answered. */
struct mcp_exchange *mcp_exchange_new(struct http_call *c);

/* Begins a result: an object whose other members are the caller's. meta: members of its `_meta`,
 * JSON without braces, or NULL. */
void mcp_result_begin(const struct mcp_exchange *x, struct jw *w, const char *meta);

/* Each answers and frees the exchange. `result` is taken. */
void mcp_answer(struct mcp_exchange *x, struct buf *result);
/* data: JSON, or NULL. */
void mcp_fail(struct mcp_exchange *x, enum rpc_code code, const char *data, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with a status other than 200. */
void mcp_fail_with(struct mcp_exchange *x, int status, enum rpc_code code, const char *data,
                   const char *words);

/* The answer comes later, from this worker, who frees itself and then calls mcp_answer(),
 * mcp_fail() or mcp_drop(). */
void mcp_wait(struct mcp_exchange *x, const struct mcp_worker *w);
/* Sends a notification now, on the stream of events, if the client takes one. `params`: JSON. */
void mcp_notify(struct mcp_exchange *x, const char *method, const char *params, size_t n);
/* A program tells its own progress: {"done", "total", "text"}; anything else is nothing. */
void mcp_own_progress(struct mcp_exchange *x, struct json_value data);
/* A client asks for the events of a stream of this session after that one: they are sent, and the
 * stream goes on as the answer to this call, or ends. */
void mcp_resume(struct http_call *c, struct mcp_session *m, uint32_t stream, uint32_t after);
/* The exchange ends without an answer. */
void mcp_drop(struct mcp_exchange *x);

/* {"name": …, "title": …, "version": …} of this server. */
void mcp_write_server(struct jw *w);
/* The secret that a call has brought; "": none. */
const char *mcp_token(const struct http_call *c);
