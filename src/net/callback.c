/* SPDX-License-Identifier: MIT */
/*
 * Theory of operation
 *
 *   result ─▶ SAVING ──on disk──▶ (attempt ─▶ wait)* ──2xx, 409──▶ dropped from the disk
 *                                     │  └─refused for good──────▶ kept aside
 *                                     └─after the last attempt───▶ backlog
 *   backlog: one after the other, read from disk, with a pause that doubles while nothing works
 *
 * A delivery holds its body in memory; when too much is held already, or after its attempts, only
 * the file is left and the backlog takes care of it. A result that could not be saved is tried from
 * memory until it is delivered or we end. Heartbeats have connections of their own, so that they
 * never stand in the way of a result.
 */
#include "net/callback.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/random.h"
#include "net/http_client.h"
#include "net/spool.h"

enum {
    URL_MAX = 2048,
    BODIES_MAX = 64 << 20,   /* bytes of results held in memory */
    BACKLOG_MS_MAX = 300000, /* between two attempts on the backlog */
    EXPIRE_S = 60,           /* how often old files are looked for */
    BEAT_CONNECTIONS = 16,
    EXITED_MS = 1500, /* the last word must not take longer */
    MS_PER_S = 1000,
    US_PER_MS = 1000,
};

/* One result on its way. */
struct delivery {
    struct callback *cb; /* borrowed */
    char id[SPOOL_ID_MAX + 1];
    struct buf text;           /* owned: the body, or the file around it */
    struct bytes body;         /* view into text */
    struct spool_entry *entry; /* the spool's; NULL: not saved */
    bool saving, backlog;
    uint32_t attempts;
    struct http_post *post; /* under way */
    struct event again;
    report_fn *kept; /* NULL: told */
    void *user;
    char url[URL_MAX];
    TAILQ_ENTRY(delivery) link;
};

struct report_beat {
    struct callback *cb; /* borrowed */
    struct buf body;     /* owned */
    struct http_post *post;
    struct report_beat **slot; /* the caller's */
    char url[URL_MAX];
    LIST_ENTRY(report_beat) link;
};

/* One life-cycle event. */
struct telling {
    struct callback *cb; /* borrowed */
    struct buf body;     /* owned */
    struct http_post *post;
    struct event again;
    bool active;
    uint32_t attempts;
    report_fn *done;
    void *user;
    char url[URL_MAX];
};

struct callback {
    struct report report;
    struct event_base *base;                                /* borrowed */
    const struct log *log;                                  /* borrowed */
    struct callback_conf conf;                              /* its strings are not kept */
    char root[URL_MAX];                                     /* address and prefix */
    struct http_client *client, *beat_client, *last_client; /* owned */
    struct spool *spool;                                    /* owned */
    struct report_counts counts;
    uint64_t held; /* bytes of bodies in memory */
    TAILQ_HEAD(delivery_list, delivery) deliveries;
    LIST_HEAD(beat_list, report_beat) beats;
    struct telling events[REPORT_EVENT_COUNT];
    struct delivery *uploading; /* the one of the backlog */
    uint64_t backlog_ms;        /* the pause after the next failure */
    struct event backlog_timer, expire_timer;
    report_fn *quiet; /* set: the end is near */
    void *quiet_user;
};

/* ---- policy ---- */

enum callback_verdict callback_judge(int status)
{
    if ((status >= 200 && status < 300) || status == 409) /* conflict: it was recorded before */
        return CALLBACK_DELIVERED;
    if (status == 404)
        return CALLBACK_UNKNOWN;
    if (status == 401 || status == 429 || status < 400 || status >= 500)
        return CALLBACK_RETRY;
    return CALLBACK_REFUSED;
}

uint64_t callback_delay_ms(uint32_t attempt, uint32_t base_ms, uint32_t cap_ms, uint32_t after_s,
                           uint16_t chance)
{
    uint64_t delay = base_ms, asked;

    for (uint32_t i = 1; i < attempt && delay < cap_ms; i++)
        delay *= 2;
    if (delay > cap_ms)
        delay = cap_ms;
    delay += delay * chance / 10 / UINT16_MAX;
    asked = after_s < CALLBACK_RETRY_AFTER_MAX_S ? after_s : CALLBACK_RETRY_AFTER_MAX_S;
    asked *= MS_PER_S;
    return delay > asked ? delay : asked;
}

static uint64_t delay_for(const struct callback *cb, uint32_t attempt, uint32_t after_s)
{
    uint16_t chance;

    random_bytes(&chance, sizeof chance);
    return callback_delay_ms(attempt, cb->conf.base_ms, cb->conf.cap_ms, after_s, chance);
}

static void arm(struct event *ev, uint64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)(ms / MS_PER_S),
                         .tv_usec = (suseconds_t)(ms % MS_PER_S * US_PER_MS)};

    (void)event_add(ev, &tv);
}

/* ---- the end ---- */

/* Saved ones have had their attempt unless it is under way; the others have only us. */
static bool is_quiet(const struct callback *cb)
{
    const struct delivery *d;

    TAILQ_FOREACH(d, &cb->deliveries, link)
    {
        if (!d->backlog && (d->post || !d->entry || d->saving))
            return false;
    }
    return true;
}

static void quiet_check(struct callback *cb)
{
    report_fn *quiet = cb->quiet;

    if (!quiet || !is_quiet(cb))
        return;
    cb->quiet = NULL;
    quiet(cb->quiet_user);
}

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

static void backlog_soon(struct callback *cb, uint64_t ms);
static void backlog_on_end(struct callback *cb, bool worked, uint32_t after_s);

static void on_delivered(struct delivery *d, const struct http_answer *a)
{
    d->cb->counts.delivered++;
    log_result(d, LOG_INFO, "callback_delivered", a);
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
    uint64_t ms = delay_for(cb, d->attempts, a->retry_after_s);

    cb->counts.failed++;
    log_result(d, LOG_WARN, "callback_failed", a);
    if (d->backlog || (d->entry && d->attempts >= cb->conf.attempts)) {
        spool_postpone(cb->spool, d->entry);
        if (!d->backlog)
            log_result(d, LOG_WARN, "callback_left_in_spool", a);
        delivery_free(d);
        backlog_soon(cb, cb->conf.spool_retry_ms);
        return;
    }
    arm(&d->again, ms);
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
        backlog_soon(cb, cb->conf.spool_retry_ms);
    quiet_check(cb);
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
        backlog_soon(cb, cb->conf.spool_retry_ms);
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

static void result(struct report *r, const char *id, struct buf *body, report_fn *kept, void *user)
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
    d->entry = spool_put(cb->spool, id, d->body, on_saved, d);
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

static void backlog_soon(struct callback *cb, uint64_t ms)
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
    arm(&cb->backlog_timer, ms);
}

static void backlog_on_end(struct callback *cb, bool worked, uint32_t after_s)
{
    uint64_t pause = cb->backlog_ms, asked = (uint64_t)after_s * MS_PER_S;

    if (worked) {
        cb->backlog_ms = cb->conf.spool_retry_ms;
        backlog_soon(cb, 0);
        return;
    }
    cb->backlog_ms = pause * 2 < BACKLOG_MS_MAX ? pause * 2 : BACKLOG_MS_MAX;
    if (asked > BACKLOG_MS_MAX)
        asked = BACKLOG_MS_MAX;
    if (!cb->quiet)
        arm(&cb->backlog_timer, pause > asked ? pause : asked);
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
        backlog_soon(cb, 0);
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
        arm(&cb->backlog_timer, cb->conf.spool_retry_ms);
    }
}

static void on_expire(evutil_socket_t fd, short what, void *user)
{
    struct callback *cb = user;
    size_t lost = spool_expire(cb->spool, (int64_t)time(NULL));

    (void)fd, (void)what;
    if (lost > 0)
        log_event(cb->log, LOG_ERROR, "results_expired", LOG_INT("results", (int64_t)lost));
    cb->counts.expired += lost;
    arm(&cb->expire_timer, (uint64_t)EXPIRE_S * MS_PER_S);
}

/* ---- heartbeats ---- */

static void beat_free(struct report_beat *b)
{
    *b->slot = NULL;
    LIST_REMOVE(b, link);
    http_post_cancel(b->post);
    buf_done(&b->body);
    free(b);
}

static void on_beat_answer(void *user, const struct http_answer *a)
{
    struct report_beat *b = user;
    struct callback *cb = b->cb;

    b->post = NULL;
    if (a->status < 200 || a->status >= 300) {
        cb->counts.beats_failed++;
        log_event(cb->log, LOG_DEBUG, "heartbeat_failed", LOG_INT("status_code", a->status),
                  LOG_STR("error", a->error));
    }
    beat_free(b);
}

static void beat_cancel(struct report *r, struct report_beat **slot)
{
    (void)r;
    if (*slot)
        beat_free(*slot);
}

static void beat(struct report *r, const char *id, struct buf *body, struct report_beat **slot)
{
    struct callback *cb = (struct callback *)r;
    struct report_beat *b = calloc(1, sizeof *b);
    struct http_ask ask = {.done = on_beat_answer, .user = b};
    struct err e;

    cb->counts.beats_failed += *slot != NULL;
    beat_cancel(r, slot);
    if (!b || body->failed) {
        buf_done(body);
        free(b);
        return;
    }
    cb->counts.beats++;
    b->cb = cb;
    b->body = *body;
    *body = BUF_INIT(body->max);
    b->slot = slot;
    *slot = b;
    LIST_INSERT_HEAD(&cb->beats, b, link);
    (void)snprintf(b->url, sizeof b->url, "%.1800s/executions/%.128s/heartbeat", cb->root, id);
    ask.url = b->url;
    ask.body = (struct bytes){.p = b->body.p, .n = b->body.n};
    if (http_client_post(cb->beat_client, &ask, &b->post, &e) < 0)
        on_beat_answer(b, &(struct http_answer){.error = e.text});
}

/* ---- life cycle ---- */

static const char *const event_names[] = {"ready", "exited"};
_Static_assert(ARRAY_LEN(event_names) == REPORT_EVENT_COUNT, "every event has a name");

static void telling_end(struct telling *t)
{
    report_fn *done = t->done;

    t->active = false;
    http_post_cancel(take_ptr(&t->post));
    (void)event_del(&t->again);
    buf_done(&t->body);
    t->done = NULL;
    if (done)
        done(t->user);
}

static void telling_attempt(struct telling *t);

static void on_told(void *user, const struct http_answer *a)
{
    struct telling *t = user;
    struct callback *cb = t->cb;
    enum report_event what = (enum report_event)(t - cb->events);
    enum callback_verdict v = callback_judge(a->status);
    /* A container may be up before the control plane has heard its name. */
    bool again = what == REPORT_READY && (v == CALLBACK_RETRY || v == CALLBACK_UNKNOWN);

    t->post = NULL;
    log_event(cb->log, v == CALLBACK_DELIVERED ? LOG_INFO : LOG_WARN,
              v == CALLBACK_DELIVERED ? "lifecycle_delivered" : "lifecycle_failed",
              LOG_STR("lifecycle", event_names[what]), LOG_INT("attempt", t->attempts),
              LOG_INT("status_code", a->status), LOG_STR("error", a->error));
    if (again)
        arm(&t->again, delay_for(cb, t->attempts, a->retry_after_s));
    else
        telling_end(t);
}

static void telling_attempt(struct telling *t)
{
    struct callback *cb = t->cb;
    struct http_client *client = t == &cb->events[REPORT_EXITED] ? cb->last_client : cb->client;
    struct http_ask ask = {
        .url = t->url, .body = {.p = t->body.p, .n = t->body.n},
             .done = on_told, .user = t
    };
    struct err e;

    t->attempts++;
    if (http_client_post(client, &ask, &t->post, &e) < 0)
        on_told(t, &(struct http_answer){.error = e.text});
}

static void on_tell_again(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    telling_attempt(user);
}

static void event(struct report *r, enum report_event what, struct buf *body, report_fn *done,
                  void *user)
{
    struct callback *cb = (struct callback *)r;
    struct telling *t = &cb->events[what];

    if (cb->events[REPORT_READY].active)
        telling_end(&cb->events[REPORT_READY]);
    t->body = *body;
    *body = BUF_INIT(body->max);
    t->done = done;
    t->user = user;
    t->active = true;
    t->attempts = 0;
    (void)snprintf(t->url, sizeof t->url, "%.1800s/containers/%s", cb->root, event_names[what]);
    telling_attempt(t);
}

/* ---- ending ---- */

static void settle(struct report *r, report_fn *quiet, void *user)
{
    struct callback *cb = (struct callback *)r;

    cb->quiet = quiet;
    cb->quiet_user = user;
    (void)event_del(&cb->backlog_timer);
    quiet_check(cb);
}

static void hurry(struct report *r)
{
    struct callback *cb = (struct callback *)r;
    struct delivery *d, *next;
    report_fn *quiet = cb->quiet;

    for (d = TAILQ_FIRST(&cb->deliveries); d; d = next) {
        next = TAILQ_NEXT(d, link);
        http_post_cancel(take_ptr(&d->post));
        (void)event_del(&d->again);
        if (d->entry || d->backlog)
            continue;
        cb->counts.lost++;
        log_event(cb->log, LOG_ERROR, "result_lost", LOG_STR("execution_id", d->id),
                  LOG_STR("error", "not delivered, and there was no room in the spool"));
    }
    cb->quiet = NULL;
    if (quiet)
        quiet(cb->quiet_user);
}

static void counts(const struct report *r, struct report_counts *ret)
{
    const struct callback *cb = (const struct callback *)r;
    struct spool_counts s;
    const struct delivery *d;

    spool_counts(cb->spool, &s);
    *ret = cb->counts;
    ret->waiting = 0;
    TAILQ_FOREACH(d, &cb->deliveries, link)
    {
        ret->waiting++;
    }
    ret->spooled = s.files;
    ret->spooled_bytes = s.bytes;
}

static const struct report_ops ops = {
    .name = "http",
    .result = result,
    .beat = beat,
    .beat_cancel = beat_cancel,
    .event = event,
    .settle = settle,
    .hurry = hurry,
    .counts = counts,
};

/* ---- opening ---- */

/* "http://host/" and "api/v1/internal/" become "http://host/api/v1/internal". */
static int make_root(struct callback *cb, const struct callback_conf *conf, struct err *e)
{
    size_t n = strlen(conf->url), m = strlen(conf->prefix);
    const char *prefix = conf->prefix;

    while (n > 0 && conf->url[n - 1] == '/')
        n--;
    while (m > 0 && prefix[m - 1] == '/')
        m--;
    while (m > 0 && prefix[0] == '/')
        prefix++, m--;
    if (n + m + 2 + SPOOL_ID_MAX * 2 > sizeof cb->root)
        return err_set(e, ERR_CALLER, "CONTROL_PLANE_URL: too long");
    (void)snprintf(cb->root, sizeof cb->root, "%.*s%s%.*s", (int)n, conf->url, m ? "/" : "", (int)m,
                   prefix);
    if (http_url_check(cb->root, e) < 0)
        return err_wrap(e, "CONTROL_PLANE_URL");
    return 0;
}

static int open_clients(struct callback *cb, const struct callback_conf *conf, struct err *e)
{
    const struct http_client_conf results = {.bearer = conf->token,
                                             .connections_max = conf->connections_max,
                                             .connect_ms = conf->connect_ms,
                                             .answer_ms = conf->answer_ms};
    struct http_client_conf beats = results, last = results;

    beats.connections_max = BEAT_CONNECTIONS;
    beats.connect_ms = beats.answer_ms = conf->beat_ms / 2;
    last.connections_max = 1;
    last.connect_ms = last.answer_ms = EXITED_MS / 2;
    if (http_client_open(cb->base, &results, &cb->client, e) < 0 ||
        http_client_open(cb->base, &beats, &cb->beat_client, e) < 0)
        return -1;
    return http_client_open(cb->base, &last, &cb->last_client, e);
}

static void forget_strings(struct callback_conf *conf)
{
    conf->url = conf->prefix = conf->token = conf->results_path = NULL;
}

static void timers_init(struct callback *cb)
{
    (void)evtimer_assign(&cb->backlog_timer, cb->base, on_backlog, cb);
    (void)evtimer_assign(&cb->expire_timer, cb->base, on_expire, cb);
    for (size_t i = 0; i < REPORT_EVENT_COUNT; i++) {
        cb->events[i].cb = cb;
        (void)evtimer_assign(&cb->events[i].again, cb->base, on_tell_again, &cb->events[i]);
    }
}

int callback_open(struct event_base *base, const struct callback_conf *conf, struct work_pool *pool,
                  const struct log *log, struct report **ret, struct err *e)
{
    struct callback *cb = calloc(1, sizeof *cb);
    struct spool_conf spool = {.path = conf->results_path,
                               .bytes_max = conf->spool_bytes_max,
                               .age_max_s = conf->spool_age_s};

    if (!cb)
        return err_set(e, ERR_HOST, "no memory for callbacks");
    cb->report.ops = &ops;
    cb->base = base;
    cb->log = log;
    cb->conf = *conf;
    forget_strings(&cb->conf);
    cb->backlog_ms = conf->spool_retry_ms;
    TAILQ_INIT(&cb->deliveries);
    LIST_INIT(&cb->beats);
    timers_init(cb);
    spool.told = cb->root;
    if (make_root(cb, conf, e) < 0 || open_clients(cb, conf, e) < 0 ||
        spool_open(&spool, pool, &cb->spool, e) < 0) {
        callback_close(&cb->report);
        return -1;
    }
    on_expire(-1, 0, cb);
    backlog_soon(cb, 0);
    *ret = &cb->report;
    return 0;
}

void callback_close(struct report *r)
{
    struct callback *cb = (struct callback *)r;

    if (!cb)
        return;
    while (!TAILQ_EMPTY(&cb->deliveries))
        delivery_free(TAILQ_FIRST(&cb->deliveries));
    while (!LIST_EMPTY(&cb->beats))
        beat_free(LIST_FIRST(&cb->beats));
    for (size_t i = 0; i < REPORT_EVENT_COUNT; i++) {
        cb->events[i].done = NULL;
        telling_end(&cb->events[i]);
    }
    (void)event_del(&cb->backlog_timer);
    (void)event_del(&cb->expire_timer);
    spool_close(cb->spool);
    http_client_close(cb->client);
    http_client_close(cb->beat_client);
    http_client_close(cb->last_client);
    free(cb);
}
