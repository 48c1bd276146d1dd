/* SPDX-License-Identifier: MIT */
/* Results: saved, sent, tried again, left to the backlog. See callback.c for the theory. */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "net/callback_inner.h"

enum {
    BODIES_MAX = 64 << 20,   /* bytes of results held in memory */
    BACKLOG_MS_MAX = 300000, /* between two attempts on the backlog */
    EXPIRE_S = 60,           /* how often old files are looked for */
    MS_PER_S = 1000,
    US_PER_MS = 1000,
};

/* ---- deliveries ---- */

static void delivery_free(struct delivery *d)
{
    struct callback *cb = d->cb;

    TAILQ_REMOVE(&cb->deliveries, d, link);
    if (cb->uploading == d)
        cb->uploading = NULL;
    http_post_cancel(d->post);
    (void)event_del(&d->again);
    if (d->entry)
        d->entry->user = NULL;
    cb->held -= d->text.n;
    buf_done(&d->text);
    free(d);
}

static void delivery_tell_kept(struct delivery *d)
{
    report_fn *kept = d->kept;

    d->kept = NULL;
    if (kept)
        kept(d->user);
}

static void log_result(const struct delivery *d, enum log_level level, const char *event,
                       const struct http_answer *a)
{
    log_event(d->cb->log, level, event, LOG_STR("execution_id", d->id),
              LOG_INT("attempt", d->attempts), LOG_INT("status_code", a->status),
              LOG_STR("error", a->error));
}

static void backlog_on_end(struct callback *cb, bool worked, uint32_t after_s);

static void on_delivered(struct delivery *d, const struct http_answer *a)
{
    d->cb->counts.delivered++;
    /* The ordinary case is not worth a line of every log. */
    log_result(d, d->attempts > 1 || d->backlog ? LOG_INFO : LOG_DEBUG, "callback_delivered", a);
    if (d->entry)
        spool_drop(d->cb->spool, take_ptr(&d->entry));
    delivery_free(d);
}

static void on_unknown(struct delivery *d, const struct http_answer *a)
{
    d->cb->counts.rejected++;
    log_result(d, LOG_WARN, "callback_unknown", a);
    if (d->entry)
        spool_drop(d->cb->spool, take_ptr(&d->entry));
    delivery_free(d);
}

static void on_refused(struct delivery *d, const struct http_answer *a)
{
    d->cb->counts.rejected++;
    log_result(d, LOG_ERROR, "callback_refused", a);
    if (d->entry)
        spool_reject(d->cb->spool, take_ptr(&d->entry));
    delivery_free(d);
}

static void on_failed(struct delivery *d, const struct http_answer *a)
{
    struct callback *cb = d->cb;
    uint64_t ms = callback_pause_ms(cb, d->attempts, a->retry_after_s);

    cb->counts.failed++;
    log_result(d, LOG_WARN, "callback_failed", a);
    if (d->backlog || (d->entry && d->attempts >= cb->conf.attempts)) {
        spool_postpone(cb->spool, d->entry);
        if (!d->backlog)
            log_result(d, LOG_WARN, "callback_left_in_spool", a);
        delivery_free(d);
        callback_backlog_soon(cb, cb->conf.spool_retry_ms);
        return;
    }
    callback_arm(&d->again, ms);
}

/* clang-format off */
static void (*const verdicts[])(struct delivery *d, const struct http_answer *a) = {
    [CALLBACK_DELIVERED] = on_delivered,
    [CALLBACK_RETRY]     = on_failed,
    [CALLBACK_UNKNOWN]   = on_unknown,
    [CALLBACK_REFUSED]   = on_refused,
};
/* clang-format on */
_Static_assert(ARRAY_LEN(verdicts) == CALLBACK_VERDICT_COUNT, "every verdict has a row");

static void on_answer(void *user, const struct http_answer *a)
{
    struct delivery *d = user;
    struct callback *cb = d->cb;
    enum callback_verdict v = callback_judge(a->status);
    bool backlog = d->backlog;

    d->post = NULL;
    verdicts[v](d, a); /* frees it, or waits for another attempt */
    if (backlog)
        backlog_on_end(cb, v != CALLBACK_RETRY, a->retry_after_s);
    else if (v == CALLBACK_DELIVERED) /* it is there: perhaps it takes the others, too */
        callback_backlog_soon(cb, cb->conf.spool_retry_ms);
    callback_quiet_check(cb);
}

static void attempt(struct delivery *d)
{
    struct http_ask ask = {
        .url = d->url, .idempotency_key = d->id, .body = d->body, .done = on_answer, .user = d};
    struct err e;

    d->attempts++;
    if (http_client_post(d->cb->client, &ask, &d->post, &e) < 0)
        on_answer(d, &(struct http_answer){.error = e.text});
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    attempt(user);
}

static struct delivery *delivery_new(struct callback *cb, const char *id)
{
    struct delivery *d = calloc(1, sizeof *d);
    int n;

    if (!d)
        return NULL;
    d->cb = cb;
    (void)snprintf(d->id, sizeof d->id, "%s", id);
    n = snprintf(d->url, sizeof d->url, "%s/executions/%s/result", cb->root, id);
    if (n < 0 || (size_t)n >= sizeof d->url) {
        free(d);
        return NULL;
    }
    (void)evtimer_assign(&d->again, cb->base, on_again, d);
    TAILQ_INSERT_TAIL(&cb->deliveries, d, link);
    return d;
}

/* ---- a new result ---- */

static void log_unsaved(const struct delivery *d, const char *why)
{
    d->cb->counts.unsaved++;
    log_event(d->cb->log, LOG_ERROR, "spool_failed", LOG_STR("execution_id", d->id),
              LOG_STR("error", why));
}

static void on_saved(void *user, struct spool_entry *entry, const char *why)
{
    struct delivery *d = user;
    struct callback *cb = d->cb;

    d->saving = false;
    if (!entry->on_disk) {
        log_unsaved(d, why);
        d->entry = NULL;
        spool_drop(cb->spool, entry);
    }
    delivery_tell_kept(d);
    if (d->entry && cb->held > BODIES_MAX) { /* the file is enough */
        delivery_free(d);
        callback_backlog_soon(cb, cb->conf.spool_retry_ms);
        callback_quiet_check(cb);
        return;
    }
    attempt(d);
}

static void result_lost(struct callback *cb, const char *id, report_fn *kept, void *user)
{
    cb->counts.lost++;
    log_event(cb->log, LOG_ERROR, "result_lost", LOG_STR("execution_id", id),
              LOG_STR("error", "neither the spool nor memory has room for it"));
    if (kept)
        kept(user);
}

void callback_result(struct report *r, const char *id, struct buf *body, report_fn *kept,
                     void *user)
{
    struct callback *cb = (struct callback *)r;
    struct delivery *d = body->failed || body->n == 0 ? NULL : delivery_new(cb, id);

    if (!d) {
        result_lost(cb, id, kept, user);
        buf_done(body);
        return;
    }
    d->kept = kept;
    d->user = user;
    d->text = *body;
    *body = BUF_INIT(body->max);
    d->body = (struct bytes){.p = d->text.p, .n = d->text.n};
    cb->held += d->text.n;
    d->saving = true;
    d->entry = spool_put(
        cb->spool, &(struct spool_order){
                       .id = id, .members = "", .body = d->body, .done = on_saved, .user = d});
    if (d->entry) {
        d->entry->user = d;
        return;
    }
    d->saving = false;
    log_unsaved(d, "the spool is full");
    if (cb->held > BODIES_MAX) {
        delivery_free(d);
        result_lost(cb, id, kept, user);
        return;
    }
    delivery_tell_kept(d);
    attempt(d);
}

/* ---- the backlog ---- */

void callback_backlog_soon(struct callback *cb, uint64_t ms)
{
    struct timeval at;

    if (cb->quiet || cb->uploading || !spool_next(cb->spool))
        return;
    if (event_pending(&cb->backlog_timer, EV_TIMEOUT, &at)) {
        struct timeval now, left;

        (void)event_base_gettimeofday_cached(cb->base, &now);
        evutil_timersub(&at, &now, &left);
        if (left.tv_sec < 0 ||
            (uint64_t)left.tv_sec * MS_PER_S + (uint64_t)left.tv_usec / US_PER_MS <= ms)
            return;
    }
    callback_arm(&cb->backlog_timer, ms);
}

static void backlog_on_end(struct callback *cb, bool worked, uint32_t after_s)
{
    uint64_t pause = cb->backlog_ms, asked = (uint64_t)after_s * MS_PER_S;

    if (worked) {
        cb->backlog_ms = cb->conf.spool_retry_ms;
        callback_backlog_soon(cb, 0);
        return;
    }
    cb->backlog_ms = pause * 2 < BACKLOG_MS_MAX ? pause * 2 : BACKLOG_MS_MAX;
    if (asked > BACKLOG_MS_MAX)
        asked = BACKLOG_MS_MAX;
    if (!cb->quiet)
        callback_arm(&cb->backlog_timer, pause > asked ? pause : asked);
}

static void on_read(void *user, struct buf *file, struct bytes body)
{
    struct delivery *d = user;
    struct callback *cb = d->cb;

    if (!body.p || cb->quiet) {
        if (!body.p) {
            log_event(cb->log, LOG_ERROR, "spool_unreadable", LOG_STR("execution_id", d->id));
            cb->counts.lost++;
            spool_reject(cb->spool, take_ptr(&d->entry));
        }
        delivery_free(d);
        callback_backlog_soon(cb, 0);
        return;
    }
    d->text = *file;
    *file = BUF_INIT(0);
    d->body = body;
    cb->held += d->text.n;
    attempt(d);
}

static void on_backlog(evutil_socket_t fd, short what, void *user)
{
    struct callback *cb = user;
    struct spool_entry *e = cb->uploading || cb->quiet ? NULL : spool_next(cb->spool);
    struct delivery *d = e ? delivery_new(cb, e->id) : NULL;

    (void)fd, (void)what;
    if (!d)
        return;
    d->backlog = true;
    d->entry = e;
    e->user = d;
    cb->uploading = d;
    if (spool_read(cb->spool, e, on_read, d) < 0) {
        delivery_free(d);
        callback_arm(&cb->backlog_timer, cb->conf.spool_retry_ms);
    }
}

static void on_expire(evutil_socket_t fd, short what, void *user)
{
    struct callback *cb = user;
    size_t lost = spool_expire(cb->spool, spool_now_s());

    (void)fd, (void)what;
    if (lost > 0)
        log_event(cb->log, LOG_ERROR, "results_expired", LOG_INT("results", (int64_t)lost));
    cb->counts.expired += lost;
    callback_arm(&cb->expire_timer, (uint64_t)EXPIRE_S * MS_PER_S);
}

void callback_results_init(struct callback *cb)
{
    TAILQ_INIT(&cb->deliveries);
    cb->backlog_ms = cb->conf.spool_retry_ms;
    (void)evtimer_assign(&cb->backlog_timer, cb->base, on_backlog, cb);
    (void)evtimer_assign(&cb->expire_timer, cb->base, on_expire, cb);
}

void callback_results_start(struct callback *cb)
{
    on_expire(-1, 0, cb);
    callback_backlog_soon(cb, 0);
}

void callback_results_done(struct callback *cb)
{
    while (!TAILQ_EMPTY(&cb->deliveries))
        delivery_free(TAILQ_FIRST(&cb->deliveries));
    (void)event_del(&cb->backlog_timer);
    (void)event_del(&cb->expire_timer);
}
