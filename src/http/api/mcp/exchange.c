/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/exchange.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/daemon/app.h"
#include "app/mcp/version.h"
#include "base/clock.h"
#include "http/server/auth.h"
#include "http/server/reply.h"

/* A report of a program that is repeated is so much larger. */
#define OWN_STEP 1e-6

enum { US_PER_S = 1000000, FRAME_MAX = 512, EVENT_ID_MAX = 24 };

/* ---- life ---- */

static bool accepts(const struct http_call *c, const char *type, const char *family)
{
    const char *accept = http_header(c, "Accept");

    return !accept || !*accept || strcasestr(accept, type) || strcasestr(accept, family) ||
           strstr(accept, "*/*");
}

const char *mcp_token(const struct http_call *c)
{
    const char *token = auth_bearer(http_header(c, "authorization"));

    return token ? token : "";
}

static void on_cancel(struct mcp_request *r);

struct mcp_exchange *mcp_exchange_new(struct http_call *c)
{
    struct mcp_exchange *x = calloc(1, sizeof *x);

    if (!x) {
        reply_status(c, 503);
        return NULL;
    }
    x->app = http_app(c);
    x->call = c;
    x->body = http_take_body(c);
    x->began_us = x->told_us = clock_us();
    x->progress = -1;
    x->takes_json = accepts(c, "application/json", "application/*");
    x->takes_events = accepts(c, "text/event-stream", "text/*");
    x->request.cancel = on_cancel;
    return x;
}

static void exchange_free(struct mcp_exchange *x)
{
    struct mcp_metrics *m = &x->app->mcp_side.sessions->metrics;

    if (x->message.kind == RPC_REQUEST && x->message.method[0])
        mcp_count_request(m, x->message.method, x->modern, x->outcome);
    m->streams -= x->streaming;
    mcp_request_end(&x->request);
    if (x->timer)
        event_free(x->timer);
    buf_done(&x->body);
    free(x);
}

/* ---- events ---- */

static void send_one(struct sse *sse, uint32_t stream, uint32_t number, const char *json, size_t n)
{
    char id[EVENT_ID_MAX];

    (void)snprintf(id, sizeof id, "%u-%u", stream, number);
    (void)sse_send(sse, "message", stream > 0 ? id : NULL, json, n);
}

/* Clients of that version know where to go on from the beginning; older ones fail on an event
 * without a message. */
static void send_first(struct mcp_exchange *x)
{
    struct mcp_session *m = x->request.session;

    if (!m)
        return;
    x->stream = ++m->replay.streams;
    if (strcmp(m->version, mcp_versions[1]) == 0)
        send_one(&x->sse, x->stream, 0, "", 0);
}

static void begin_stream(struct mcp_exchange *x)
{
    if (x->streaming || !x->takes_events || !x->call)
        return;
    x->streaming = true;
    x->app->mcp_side.sessions->metrics.streams++;
    sse_begin_unchanged(&x->sse, x->call);
    send_first(x);
}

static void send_event(struct mcp_exchange *x, const struct buf *json)
{
    if (json->failed)
        return;
    x->events++;
    if (x->stream > 0 && x->request.session)
        replay_keep(&x->request.session->replay, x->stream, x->events, json->p, json->n);
    if (x->call)
        send_one(&x->sse, x->stream, x->events, json->p, json->n);
    x->told_us = clock_us();
}

void mcp_notify(struct mcp_exchange *x, const char *method, const char *params, size_t n)
{
    cleanup_with(buf_done) struct buf json = BUF_INIT(n + FRAME_MAX);
    struct jw w = JW(&json);

    begin_stream(x);
    if (!x->streaming || (x->call && x->sse.full))
        return;
    jw_object(&w);
    jw_kv_string(&w, "jsonrpc", "2.0");
    jw_kv_string(&w, "method", method);
    jw_key(&w, "params");
    jw_raw(&w, params, n);
    jw_object_end(&w);
    send_event(x, &json);
}

static void tell_progress(struct mcp_exchange *x, double progress, double total, const char *words)
{
    cleanup_with(buf_done) struct buf json = BUF_INIT(FRAME_MAX + 8 * MCP_PROGRESS_MAX);
    struct jw w = JW(&json);

    if (!x->token.p || progress <= x->progress)
        return;
    x->progress = progress;
    jw_object(&w);
    jw_key(&w, "progressToken");
    jw_raw(&w, x->token.p, x->token.n);
    jw_kv_double(&w, "progress", progress, 6);
    if (total >= 0)
        jw_kv_double(&w, "total", total, 6);
    if (words && *words)
        jw_kv_bytes(&w, "message", words, strnlen(words, MCP_PROGRESS_MAX));
    jw_object_end(&w);
    mcp_notify(x, "notifications/progress", json.p, json.n);
}

void mcp_own_progress(struct mcp_exchange *x, struct json_value data)
{
    struct json_value text = json_member(data, "text"), all = json_member(data, "total");
    cleanup_with(buf_done) struct buf words = BUF_INIT(data.n);
    struct mcp_own *own = &x->own;
    double done = 0, total = 0;

    if (!json_to_double(json_member(data, "done"), &done) || done < 0)
        return;
    if (!own->told)
        own->base = x->progress > 0 ? x->progress : 0;
    own->told = true;
    own->total = all.p && json_to_double(all, &total) ? own->base + total : -1;
    own->at_us = clock_us();
    if (text.p && text.type == JSON_STRING)
        (void)!json_decode_string(text, JSON_LENIENT_UTF8, &words);
    (void)snprintf(own->words, sizeof own->words, "%s", words.p ? words.p : "");
    tell_progress(x, own->base + done, own->total, own->words);
}

/* What the program said last, now and then, so that clients stay awake; else the seconds. */
static void tell_again(struct mcp_exchange *x, uint64_t now, const char *doing)
{
    struct mcp_own *own = &x->own;

    if (!own->told) {
        tell_progress(x, (double)(now - x->began_us) / US_PER_S, -1, doing);
    } else if (now - own->at_us >= (uint64_t)MCP_OWN_S * US_PER_S) {
        own->at_us = now;
        tell_progress(x, x->progress + OWN_STEP, own->total, own->words);
    }
}

/* Once a second. */
static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct mcp_exchange *x = user;
    uint64_t now = clock_us();
    const char *doing = x->worker.doing ? x->worker.doing(x->worker.user) : NULL;

    (void)fd;
    (void)what;
    begin_stream(x);
    if (!x->streaming)
        return;
    if (x->token.p)
        tell_again(x, now, doing);
    if (x->call && now - x->told_us >= (uint64_t)MCP_QUIET_S * US_PER_S) {
        (void)http_stream_write(x->call, ":\n\n", 3);
        x->told_us = now;
    }
}

static void on_drained(void *user)
{
    struct mcp_exchange *x = user;

    if (x->streaming)
        sse_drained(&x->sse);
}

/* ---- waiting ---- */

static void stop_worker(struct mcp_exchange *x)
{
    struct mcp_worker w = x->worker;

    x->worker = (struct mcp_worker){0};
    if (w.stop)
        w.stop(w.user);
}

static void on_gone(void *user)
{
    struct mcp_exchange *x = user;

    x->call = NULL;
    if (!x->modern)
        return;
    stop_worker(x);
    exchange_free(x);
}

static void on_cancel(struct mcp_request *r)
{
    struct mcp_exchange *x = (struct mcp_exchange *)r;

    stop_worker(x);
    mcp_drop(x);
}

void mcp_wait(struct mcp_exchange *x, const struct mcp_worker *w)
{
    const struct timeval second = {.tv_sec = MCP_SOON_MS / 1000};

    x->worker = *w;
    x->timer = event_new(x->app->base, -1, EV_PERSIST, on_timer, x);
    if (x->timer)
        (void)event_add(x->timer, &second);
    http_on_gone(x->call, on_gone, x);
    http_on_drain(x->call, on_drained, x);
}

/* Nothing of the call calls back any more. */
static void detach(struct mcp_exchange *x)
{
    if (!x->call)
        return;
    http_on_gone(x->call, NULL, NULL);
    http_on_drain(x->call, NULL, NULL);
}

static struct mcp_exchange *of_stream(const struct mcp_session *m, uint32_t stream)
{
    struct mcp_request *r;

    LIST_FOREACH(r, &m->requests, link)
    if (((struct mcp_exchange *)r)->stream == stream)
        return (struct mcp_exchange *)r;
    return NULL;
}

void mcp_resume(struct http_call *c, struct mcp_session *m, uint32_t stream, uint32_t after)
{
    struct mcp_exchange *x = stream > 0 ? of_stream(m, stream) : NULL;
    const struct replay_event *e;
    struct sse sse;

    if (x && x->call) { /* the connection that it was on is of no use any more */
        detach(x);
        sse_end(&x->sse);
    }
    sse_begin_unchanged(&sse, c);
    while ((e = replay_next(&m->replay, stream, after))) {
        send_one(&sse, stream, e->number, e->json, e->n);
        after = e->number;
    }
    if (!x) {
        sse_end(&sse);
        return;
    }
    x->sse = sse;
    x->call = c;
    http_on_gone(c, on_gone, x);
    http_on_drain(c, on_drained, x);
}

void mcp_drop(struct mcp_exchange *x)
{
    detach(x);
    begin_stream(x);
    if (x->call && x->streaming)
        sse_end(&x->sse);
    else if (x->call)
        http_reply(x->call, 202, NULL, NULL);
    exchange_free(x);
}

/* ---- answers ---- */

static void send_answer(struct mcp_exchange *x, int status, struct buf *json)
{
    detach(x);
    if (x->call && !x->streaming && !x->takes_json)
        begin_stream(x);
    if (x->streaming) {
        send_event(x, json);
        if (x->call)
            sse_end(&x->sse);
        buf_done(json);
    } else if (x->call && json->failed) {
        reply_status(x->call, 500);
        buf_done(json);
    } else if (x->call) {
        http_reply(x->call, status, "application/json", json);
    } else {
        buf_done(json);
    }
    exchange_free(x);
}

void mcp_result_begin(const struct mcp_exchange *x, struct jw *w, const char *meta)
{
    jw_object(w);
    if (x->modern)
        jw_kv_string(w, "resultType", "complete");
    if (!x->modern && !meta)
        return;
    jw_key(w, "_meta");
    jw_object(w);
    if (meta)
        jw_raw(w, meta, strlen(meta));
    if (x->modern) {
        jw_key(w, "io.modelcontextprotocol/serverInfo");
        mcp_write_server(w);
    }
    jw_object_end(w);
}

void mcp_answer(struct mcp_exchange *x, struct buf *result)
{
    struct buf json = BUF_INIT(MCP_ANSWER_MAX + FRAME_MAX);

    if (result->failed) {
        buf_done(result);
        mcp_fail(x, RPC_INTERNAL, NULL, "the result is larger than %d bytes", MCP_ANSWER_MAX);
        return;
    }
    x->outcome = x->outcome == MCP_TOOL_ERROR ? MCP_TOOL_ERROR : MCP_OK;
    (void)buf_reserve(&json, result->n + FRAME_MAX);
    rpc_write_result(&json, x->message.id, result->p, result->n);
    buf_done(result);
    send_answer(x, 200, &json);
}

void mcp_fail_with(struct mcp_exchange *x, int status, enum rpc_code code, const char *data,
                   const char *words)
{
    struct buf json = BUF_INIT(MCP_ANSWER_MAX);

    x->outcome = MCP_ERROR;
    rpc_write_error(&json, x->message.id, code, words, data);
    send_answer(x, status, &json);
}

void mcp_fail(struct mcp_exchange *x, enum rpc_code code, const char *data, const char *fmt, ...)
{
    char words[RPC_WORDS_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    mcp_fail_with(x, 200, code, data, words);
}
