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
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "net/callback_inner.h"

enum {
    BEAT_CONNECTIONS = 16,
    EXITED_MS = 1500, /* the last word must not take longer */
    MS_PER_S = 1000,
    US_PER_MS = 1000,
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

uint64_t callback_pause_ms(const struct callback *cb, uint32_t attempt, uint32_t after_s)
{
    uint16_t chance;

    random_bytes(&chance, sizeof chance);
    return callback_delay_ms(attempt, cb->conf.base_ms, cb->conf.cap_ms, after_s, chance);
}

void callback_arm(struct event *ev, uint64_t ms)
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

void callback_quiet_check(struct callback *cb)
{
    report_fn *quiet = cb->quiet;

    if (!quiet || !is_quiet(cb))
        return;
    cb->quiet = NULL;
    quiet(cb->quiet_user);
}

/* ---- ending ---- */

static void settle(struct report *r, report_fn *quiet, void *user)
{
    struct callback *cb = (struct callback *)r;

    cb->quiet = quiet;
    cb->quiet_user = user;
    (void)event_del(&cb->backlog_timer);
    callback_quiet_check(cb);
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
    .write = callback_write,
    .result = callback_result,
    .beat = callback_beat,
    .beat_cancel = callback_beat_cancel,
    .event = callback_event,
    .settle = settle,
    .hurry = hurry,
    .counts = counts,
};

/* ---- opening ---- */

/* "http://host/" and "api/v1/internal/" become "http://host/api/v1/internal". */
static int make_root(const char *url, const char *prefix, char root[CALLBACK_URL_MAX],
                     struct err *e)
{
    size_t n = strlen(url), m = strlen(prefix);

    if (http_url_check(url, e) < 0)
        return err_wrap(e, "CONTROL_PLANE_URL");
    while (n > 0 && url[n - 1] == '/')
        n--;
    while (m > 0 && prefix[m - 1] == '/')
        m--;
    while (m > 0 && prefix[0] == '/')
        prefix++, m--;
    if (n + m + 2 + SPOOL_ID_MAX * 2 > CALLBACK_URL_MAX)
        return err_set(e, ERR_CALLER, "CONTROL_PLANE_URL: too long");
    (void)snprintf(root, CALLBACK_URL_MAX, "%.*s%s%.*s", (int)n, url, m ? "/" : "", (int)m, prefix);
    if (http_url_check(root, e) < 0)
        return err_wrap(e, "CALLBACK_PREFIX: the address of callbacks");
    return 0;
}

int callback_check(const char *url, const char *prefix, struct err *e)
{
    char root[CALLBACK_URL_MAX];

    return make_root(url, prefix, root, e);
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

int callback_open(struct event_base *base, const struct callback_conf *conf, struct work_pool *pool,
                  const struct log *log, struct report **ret, struct err *e)
{
    struct callback *cb = calloc(1, sizeof *cb);
    struct spool_conf spool = {.path = conf->results_path,
                               .option = "RESULTS_PATH",
                               .bytes_max = conf->spool_bytes_max,
                               .age_max_s = conf->spool_age_s};

    if (!cb)
        return err_set(e, ERR_HOST, "no memory for callbacks");
    cb->report.ops = &ops;
    cb->base = base;
    cb->log = log;
    cb->conf = *conf;
    forget_strings(&cb->conf);
    callback_results_init(cb);
    callback_tell_init(cb);
    spool.told = cb->root;
    if (make_root(conf->url, conf->prefix, cb->root, e) < 0 || open_clients(cb, conf, e) < 0 ||
        spool_open(&spool, pool, &cb->spool, e) < 0) {
        callback_close(&cb->report);
        return -1;
    }
    callback_results_start(cb);
    *ret = &cb->report;
    return 0;
}

void callback_close(struct report *r)
{
    struct callback *cb = (struct callback *)r;

    if (!cb)
        return;
    callback_results_done(cb);
    callback_tell_done(cb);
    spool_close(cb->spool);
    http_client_close(cb->client);
    http_client_close(cb->beat_client);
    http_client_close(cb->last_client);
    free(cb);
}
