/* SPDX-License-Identifier: MIT */
/*
 * /v1/sessions: code that is loaded once and called often.
 *
 * A call that accepts text/event-stream is answered with events: `item` for each item of a
 * generator, `result` at the end. A slow reader slows the generator; one that leaves ends it.
 */
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/functions/function_json.h"
#include "http/api/functions/session_json.h"
#include "http/server/reply.h"
#include "http/server/sse.h"

enum { ONE_MAX = 4096 }; /* a session as JSON */

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY) {
        http_set_header(c, "Retry-After", "1");
        api_reply_full(c, e, "Try again later, or use another session.");
    } else {
        api_reply_wrong(c, e);
    }
}

static struct fsession *find(struct http_call *c)
{
    struct fsession *s;
    struct err e;

    if (fsession_find(http_app(c), http_request(c)->param[0], &s, &e) == 0)
        return s;
    http_reply_error(c, &e);
    return NULL;
}

/* ---- turns that are answered with one object ---- */

static void reply_turn(struct http_call *c, const struct call_result *r, struct buf *json,
                       int status)
{
    char timing[SERVER_TIMING_MAX];

    turn_server_timing(&r->run->at, timing);
    http_set_header(c, "Server-Timing", timing);
    http_reply(c, status, API_JSON, json);
}

static void on_done(void *user, const struct call_result *r, struct buf *json)
{
    reply_turn(user, r, json, 200);
}

/* What could not be loaded was not created. */
static void on_created(void *user, const struct call_result *r, struct buf *json)
{
    reply_turn(user, r, json, r->outcome.status == CALL_SUCCESS ? 201 : 422);
}

static void on_refused(void *user, const struct err *e)
{
    reply_refused(user, e);
}

static void on_gone(void *user)
{
    turn_abandon(user);
}

void api_session_create(struct http_call *c)
{
    struct buf text = http_take_body(c);
    struct function_order order = {.text = &text,
                                   .request_id = http_request(c)->id,
                                   .asked_us = clock_us(),
                                   .render = call_result_json,
                                   .done = on_created,
                                   .refused = on_refused,
                                   .user = c};
    struct turn *t = NULL;
    struct err e;

    if (fsession_create(http_app(c), &order, &t, &e) < 0) {
        reply_refused(c, &e);
    } else {
        http_on_gone(c, on_gone, t);
    }
}

/* ---- calls that are answered with events ---- */

struct streaming {
    struct sse sse;
    struct http_call *call;
    struct turn *turn; /* borrowed; NULL: over */
    bool begun;
};

static void stream_begin(struct streaming *s)
{
    if (!s->begun)
        sse_begin(&s->sse, s->call);
    s->begun = true;
}

static bool stream_item(void *user, size_t index, const char *json, size_t n)
{
    struct streaming *s = user;

    stream_begin(s);
    return sse_send_item(&s->sse, index, json, n);
}

/* Of changes that go back to their mounts. */
static void stream_event(void *user, const struct mount *m, const struct sync_event *event)
{
    cleanup_with(buf_done) struct buf json = BUF_INIT(0);
    struct streaming *s = user;

    stream_begin(s);
    sync_event_json(m, event, &json);
    if (!json.failed)
        (void)sse_send(&s->sse, sync_event_name(event), NULL, json.p, json.n);
}

static void stream_done(void *user, const struct call_result *r, struct buf *json)
{
    struct streaming *s = user;

    (void)r;
    stream_begin(s);
    (void)sse_send(&s->sse, "result", NULL, json->p, json->n);
    sse_end(&s->sse);
    free(s);
}

static void stream_refused(void *user, const struct err *e)
{
    struct streaming *s = user;

    reply_refused(s->call, e);
    free(s);
}

static void stream_gone(void *user)
{
    struct streaming *s = user;

    turn_abandon(s->turn);
    free(s);
}

static void stream_drained(void *user)
{
    struct streaming *s = user;

    sse_drained(&s->sse);
    turn_resume(s->turn);
}

static bool wants_stream(const struct http_call *c)
{
    const char *accept = http_header(c, "Accept");

    return accept && strstr(accept, "text/event-stream");
}

static void call_stream(struct http_call *c, struct fsession *session, struct buf *text)
{
    struct streaming *s = calloc(1, sizeof *s);
    struct function_order order = {.text = text,
                                   .request_id = http_request(c)->id,
                                   .asked_us = clock_us(),
                                   .render = call_result_json,
                                   .done = stream_done,
                                   .refused = stream_refused,
                                   .item = stream_item,
                                   .event = stream_event,
                                   .user = s};
    struct err e;

    if (!s) {
        buf_done(text);
        reply_status(c, 503);
        return;
    }
    s->call = c;
    if (fsession_call(session, &order, &s->turn, &e) < 0) {
        free(s);
        reply_refused(c, &e);
        return;
    }
    http_on_gone(c, stream_gone, s);
    http_on_drain(c, stream_drained, s);
    if (turn_is_read(s->turn))
        stream_begin(s); /* it is a call: the client may know at once */
}

void api_session_call(struct http_call *c)
{
    struct buf text = BUF_INIT(0);
    struct function_order order = {.text = &text,
                                   .request_id = http_request(c)->id,
                                   .asked_us = clock_us(),
                                   .render = call_result_json,
                                   .done = on_done,
                                   .refused = on_refused,
                                   .user = c};
    struct fsession *s = find(c);
    struct turn *t = NULL;
    struct err e;

    if (!s)
        return;
    text = http_take_body(c);
    if (wants_stream(c)) {
        call_stream(c, s, &text);
    } else if (fsession_call(s, &order, &t, &e) < 0) {
        reply_refused(c, &e);
    } else {
        http_on_gone(c, on_gone, t);
    }
}

/* ---- the rest ---- */

static const char *const levels[] = {"soft", "module", "hard", "context", NULL};
enum { LEVEL_HARD = 2 }; /* the first of the two that mean a new process */

struct reset_body {
    int level;
};

static const struct shape_field reset_fields[] = {
    {"level", SHAPE_CHOICE, 0, offsetof(struct reset_body, level), .words = levels,
     .help = "soft, module: the code once more; hard, context: another process"},
};
const struct shape reset_shape = {reset_fields, ARRAY_LEN(reset_fields), SHAPE_NULLS,
                                  "SessionReset"};

void api_session_reset(struct http_call *c)
{
    const struct http_request *r = http_request(c);
    struct function_order order = {.request_id = r->id,
                                   .asked_us = clock_us(),
                                   .render = call_result_json,
                                   .done = on_done,
                                   .refused = on_refused,
                                   .user = c};
    struct fsession *s = find(c);
    cleanup_with(shaping_done) struct shaping shaping = {0};
    struct reset_body body = {0};
    struct turn *t = NULL;
    struct err e;

    if (!s || (r->body_n > 0 && !dialect_decode(c, &reset_shape, &body, &shaping)))
        return;
    if (fsession_reset(s, &order, body.level >= LEVEL_HARD, &t, &e) < 0)
        reply_refused(c, &e);
    else
        http_on_gone(c, on_gone, t);
}

void api_sessions_list(struct http_call *c)
{
    const struct fsessions *all = &http_app(c)->functions.sessions;
    struct buf body = BUF_INIT((all->n + 1) * ONE_MAX);
    struct jw w = JW(&body);
    const struct fsession *s;

    jw_object(&w);
    jw_key(&w, "sessions");
    jw_array(&w);
    TAILQ_FOREACH(s, &all->list, link)
    {
        if (w.comma)
            (void)buf_putc(&body, ',');
        fsession_json(s, &body);
        w.comma = true;
    }
    jw_array_end(&w);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

void api_session_get(struct http_call *c)
{
    struct buf body = BUF_INIT(ONE_MAX);
    struct fsession *s = find(c);

    if (!s)
        return;
    fsession_json(s, &body);
    http_reply_json(c, 200, &body);
}

void api_session_delete(struct http_call *c)
{
    struct fsession *s = find(c);

    if (!s)
        return;
    fsession_delete(s);
    http_reply(c, 204, NULL, NULL);
}
