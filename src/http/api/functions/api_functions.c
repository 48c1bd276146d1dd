/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/functions/call: the body is handed to the app as it is; the answer is the result of the
 * call, whatever became of it. Only a body that is no call is refused, with 400.
 *
 * POST /v1/functions/sync: what an earlier call changed in its mounts goes back to them.
 *
 * Both answer with events where the client accepts text/event-stream: each item of a generator,
 * those of the sync while it goes on, and the answer as the last one, "result".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/function/call.h"
#include "app/function/kept_calls.h"
#include "base/clock.h"
#include "http/api/api.h"
#include "http/api/functions/function_json.h"
#include "http/api/problem.h"
#include "http/server/reply.h"
#include "http/server/sse.h"

/* One request being answered. */
struct asked {
    struct http_call *http;
    struct call *call;      /* or */
    struct kept_sync *sync; /* what is gone for; borrowed */
    bool live;              /* as events */
    bool begun;             /* the stream */
    struct sse sse;
};

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY) {
        api_retry_after(c);
        api_reply_full(c, e, API_RETRY_AFTER);
    } else {
        api_reply_wrong(c, e);
    }
}

/* ---- events ---- */

static void begin(struct asked *a)
{
    if (!a->begun)
        sse_begin(&a->sse, a->http);
    a->begun = true;
}

/* A file is written in the time a slow reader takes for its event, or the queue grows: there are at
 * most as many events as changes. */
static void on_event(void *user, const struct mount *m, const struct sync_event *event)
{
    cleanup_with(buf_done) struct buf json = BUF_INIT(0);
    struct asked *a = user;

    if (!a->live)
        return;
    begin(a);
    sync_event_json(m, event, &json);
    if (!json.failed)
        (void)sse_send(&a->sse, sync_event_name(event), NULL, json.p, json.n);
}

/* A slow reader slows the generator. */
static bool on_item(void *user, size_t index, const char *json, size_t n)
{
    struct asked *a = user;

    begin(a);
    return sse_send_item(&a->sse, index, json, n);
}

static void on_drained(void *user)
{
    struct asked *a = user;

    sse_drained(&a->sse);
    call_resume(a->call);
}

/* The last word; json is taken. */
static void reply_json(struct asked *a, struct buf *json)
{
    static const char too_large[] = "{\"error\":\"the result is too large for an event\"}";

    if (!a->live) {
        http_reply_json(a->http, 200, json);
        return;
    }
    begin(a);
    if (!json->failed)
        (void)sse_send(&a->sse, "result", NULL, json->p, json->n);
    if (json->failed || a->sse.dropped > 0)
        (void)sse_send(&a->sse, "error", NULL, too_large, sizeof too_large - 1);
    sse_end(&a->sse);
    buf_done(json);
}

static bool wants_events(struct http_call *c)
{
    const char *accept = http_header(c, "Accept");

    return accept && strcasestr(accept, "text/event-stream");
}

static struct asked *asked_new(struct http_call *c)
{
    struct asked *a = calloc(1, sizeof *a);

    if (!a) {
        reply_status(c, 503);
        return NULL;
    }
    a->http = c;
    a->live = wants_events(c);
    return a;
}

/* ---- calls ---- */

static void on_call_done(void *user, const struct call_result *r, struct buf *json)
{
    struct asked *a = user;
    char timing[SERVER_TIMING_MAX];

    call_server_timing(&r->run->at, timing);
    if (!a->begun)
        http_set_header(a->http, "Server-Timing", timing);
    reply_json(a, json);
    free(a);
}

static void on_call_refused(void *user, const struct err *e)
{
    struct asked *a = user;

    reply_refused(a->http, e);
    free(a);
}

static void on_call_gone(void *user)
{
    struct asked *a = user;

    call_abandon(a->call);
    free(a);
}

void api_function_call(struct http_call *c)
{
    struct buf text = http_take_body(c);
    struct asked *a = asked_new(c);
    struct function_order order = {.text = &text,
                                   .request_id = http_request(c)->id,
                                   .asked_us = clock_us(),
                                   .render = call_result_json,
                                   .done = on_call_done,
                                   .refused = on_call_refused,
                                   .event = on_event,
                                   .user = a};
    struct err e;

    if (!a) {
        buf_done(&text);
        return;
    }
    order.item = a->live ? on_item : NULL;
    if (app_call(http_app(c), &order, &a->call, &e) < 0) {
        free(a);
        reply_refused(c, &e);
        return;
    }
    http_on_gone(c, on_call_gone, a);
    if (a->live)
        http_on_drain(c, on_drained, a);
}

/* ---- sync ---- */

struct sync_body {
    struct bytes call_id;
    struct json_value as_in_mount; /* looked at by mount_parse_sync() */
};

/* clang-format off */
#define AT(member) offsetof(struct sync_body, member)
static const struct shape_field fields[] = {
    {"callId", SHAPE_STRING, SHAPE_REQUIRED, AT(call_id),
     .help = "meta.callId of a call with a mount whose changes were not written back"},
    {"onError", SHAPE_RAW, 0, AT(as_in_mount), .schema = "{\"enum\":[\"continue\",\"abort\",\"rollback\"]}",
     .help = "when one file cannot be written back; as in options.mount.sync"},
    {"allowAbort", SHAPE_RAW, 0, AT(as_in_mount), .schema = "{\"type\":\"boolean\"}",
     .help = "a rule may end the sync; as in options.mount.sync"},
    {"rules", SHAPE_RAW, 0, AT(as_in_mount), .accepts = BIT(JSON_ARRAY),
     .schema = "{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/SyncRule\"}}",
     .help = "in place of those of the call"},
};
#undef AT
/* clang-format on */
const struct shape sync_shape = {fields, ARRAY_LEN(fields), SHAPE_NULLS, "FunctionSync"};

static void sync_answer_json(const struct sync_report *r, struct buf *out)
{
    *out = BUF_INIT(sync_report_room(r));
    sync_report_json(r, out);
}

static void on_sync_done(void *user, struct buf *json)
{
    struct asked *a = user;

    reply_json(a, json);
    free(a);
}

static void on_sync_gone(void *user)
{
    struct asked *a = user;

    kept_sync_abandon(a->sync);
    free(a);
}

static void reply_no_sync(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY)
        reply_problem(c, &(struct reply_problem){
                             .status = 409,
                             .code = "Executor.Conflict",
                             .description = "Another sync of this call is under way",
                             .error_detail = e->text,
                             .solution = "Wait for its answer.",
                         });
    else
        http_reply_error(c, e);
}

static void sync_begin(struct http_call *c, const struct sync_body *b)
{
    const struct http_request *r = http_request(c);
    struct asked *a = asked_new(c);
    struct kept_order order = {.call_id = b->call_id.p,
                               .event = on_event,
                               .render = sync_answer_json,
                               .done = on_sync_done,
                               .user = a};
    struct err e;

    if (!a)
        return;
    if (json_parse(r->body, r->body_n, 0, &order.rules, &e) < 0 ||
        app_sync(http_app(c), &order, &a->sync, &e) < 0) {
        free(a);
        reply_no_sync(c, &e);
        return;
    }
    http_on_gone(c, on_sync_gone, a);
}

void api_function_sync(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s;
    struct sync_body body = {0};

    if (dialect_decode(c, &sync_shape, &body, &s))
        sync_begin(c, &body);
}
