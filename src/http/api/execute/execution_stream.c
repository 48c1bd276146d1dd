/* SPDX-License-Identifier: MIT */
#include "http/api/execute/execution_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jw.h"
#include "base/utf8.h"
#include "http/api/api.h"
#include "http/api/execute/execution_json.h"
#include "http/server/sse.h"

enum {
    CHUNK_MAX = 16 * 1024, /* bytes of a stream in one event */
    CHUNK_OVERHEAD = 32,
    ESCAPE_FACTOR = 6,
    INLINE_MAX = 256 * 1024, /* a result with larger texts is written on a worker */
    ID_MAX = 48,
    LOCATION_MAX = 32 + EXECUTION_ID_MAX,
};

struct execution_stream {
    struct execution_waiter waiter;
    struct execution_follower follower;
    bool waits, follows; /* in the lists of the execution */
    bool progress;       /* there is one to send */
    bool done, writing;
    struct http_call *c; /* NULL: gone */
    struct sse sse;
    struct execution *x; /* held */
    size_t out_at, err_at;
    struct work work;
    struct buf result;
};

bool execution_stream_wanted(struct http_call *c)
{
    const char *accept = http_header(c, "Accept");

    return accept && strcasestr(accept, "text/event-stream");
}

static void on_done(void *user, struct execution *x)
{
    struct execution_stream *s = user;

    (void)x;
    s->waits = false; /* what has to be done is done as its follower */
}

struct execution_stream *execution_stream_new(struct http_call *c)
{
    struct execution_stream *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->c = c;
    s->waiter.done = on_done;
    s->waiter.user = s;
    return s;
}

struct execution_waiter *execution_stream_waiter(struct execution_stream *s)
{
    return &s->waiter;
}

void execution_stream_free(struct execution_stream *s)
{
    if (!s)
        return;
    if (s->x)
        execution_drop(s->x);
    buf_done(&s->result);
    free(s);
}

/* ---- what was written ---- */

/* A character that is not complete yet waits for its rest, until there is none. */
static size_t whole(const struct execution_stream *s, const struct buf *b, size_t at)
{
    size_t n = b->n - at;

    if (n > CHUNK_MAX)
        n = utf8_truncate(b->p + at, n, CHUNK_MAX);
    else if (!s->done)
        n -= utf8_incomplete_tail(b->p + at, n);
    return n;
}

/* False: there is nothing to send. */
static bool send_chunk(struct execution_stream *s, const char *event, const struct buf *b,
                       size_t *at)
{
    size_t n = b->n > *at ? whole(s, b, *at) : 0;
    struct buf json = BUF_INIT(n * ESCAPE_FACTOR + CHUNK_OVERHEAD);
    struct jw w = JW(&json);
    char id[ID_MAX];

    if (n == 0)
        return false;
    jw_object(&w);
    jw_kv_bytes(&w, "data", b->p + *at, n);
    jw_object_end(&w);
    *at += n;
    (void)snprintf(id, sizeof id, "%zu-%zu", s->out_at, s->err_at);
    (void)sse_send(&s->sse, event, id, json.failed ? "{}" : json.p, json.failed ? 2 : json.n);
    buf_done(&json);
    return true;
}

/* Written by a tenant: only JSON travels. */
static bool send_progress(struct execution_stream *s)
{
    const struct buf *b = &s->x->task.result.progress;
    struct json_value v;
    struct err e;

    if (!s->progress)
        return false;
    s->progress = false;
    if (b->n > 0 && json_parse(b->p, b->n, 0, &v, &e) == 0)
        (void)sse_send(&s->sse, "progress", NULL, v.p, v.n);
    return true;
}

/* ---- the end ---- */

static void finish(struct execution_stream *s)
{
    static const char too_large[] = "{\"error\":\"the result is too large for an event\"}";
    bool failed = s->result.failed;

    http_on_gone(s->c, NULL, NULL);
    http_on_drain(s->c, NULL, NULL);
    if (!failed)
        (void)sse_send(&s->sse, "result", NULL, s->result.p, s->result.n);
    if (failed || s->sse.dropped > 0)
        (void)sse_send(&s->sse, "error", NULL, too_large, sizeof too_large - 1);
    sse_end(&s->sse);
    execution_stream_free(s);
}

static void write_run(struct work *w)
{
    struct execution_stream *s = container_of(w, struct execution_stream, work);

    execution_result_json(s->x, &s->result);
}

static void write_done(struct work *w)
{
    struct execution_stream *s = container_of(w, struct execution_stream, work);

    if (s->c)
        finish(s);
    else
        execution_stream_free(s);
}

static void write_result(struct execution_stream *s)
{
    const struct run_result *r = &s->x->task.result;

    s->result = BUF_INIT(execution_json_room(s->x));
    if (r->out.n + r->err.n + r->result.n + r->error.n <= INLINE_MAX) {
        execution_result_json(s->x, &s->result);
        finish(s);
        return;
    }
    s->writing = true;
    s->work = (struct work){.run = write_run, .done = write_done};
    work_submit(s->x->app->work, &s->work);
}

/* Sends what there is, as far as the client takes it. The stream may be gone afterwards. */
static void go_on(struct execution_stream *s)
{
    const struct run_result *r = &s->x->task.result;

    while (!s->sse.full && (send_progress(s) || send_chunk(s, "stdout", &r->out, &s->out_at) ||
                            send_chunk(s, "stderr", &r->err, &s->err_at)))
        ;
    if (s->done && !s->sse.full && !s->writing)
        write_result(s);
}

static void on_news(void *user, enum execution_news what)
{
    struct execution_stream *s = user;

    if (what == EXECUTION_PROGRESS)
        s->progress = true;
    if (what == EXECUTION_ENDED) {
        s->done = true;
        s->follows = false;
        execution_unfollow(&s->follower);
    }
    go_on(s);
}

static void on_drain(void *user)
{
    struct execution_stream *s = user;

    sse_drained(&s->sse);
    go_on(s);
}

static void on_gone(void *user)
{
    struct execution_stream *s = user;

    s->c = NULL;
    if (s->follows)
        execution_unfollow(&s->follower);
    if (s->waits)
        execution_leave(s->x, &s->waiter);
    if (s->writing)
        work_forget(&s->work);
    else
        execution_stream_free(s);
}

/* ---- the beginning ---- */

/* Where the client was; "" or nonsense: nowhere yet. */
static void resume(struct execution_stream *s)
{
    const struct run_result *r = &s->x->task.result;
    const char *last = http_header(s->c, "Last-Event-ID");
    size_t out, err;
    int n = 0;

    if (!last || sscanf(last, "%9zu-%9zu%n", &out, &err, &n) != 2 || last[n] || out > r->out.n ||
        err > r->err.n)
        return;
    s->out_at = out;
    s->err_at = err;
}

void execution_stream_begin(struct execution_stream *s, struct execution *x, bool waits)
{
    char location[LOCATION_MAX];

    s->x = x;
    s->waits = waits;
    s->done = execution_is_done(x);
    s->progress = x->task.result.progress.n > 0;
    execution_hold(x);
    resume(s);
    (void)snprintf(location, sizeof location, "/v1/executions/%s", x->id);
    http_set_header(s->c, "Location", location);
    sse_begin(&s->sse, s->c);
    http_on_gone(s->c, on_gone, s);
    http_on_drain(s->c, on_drain, s);
    if (!s->done) {
        s->follows = true;
        s->follower = (struct execution_follower){.news = on_news, .user = s};
        execution_follow(x, &s->follower);
    }
    go_on(s);
}
