/* SPDX-License-Identifier: MIT */
/* Heartbeats and life-cycle events: what is told without being saved. */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "net/callback_inner.h"

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

void callback_beat_cancel(struct report *r, struct report_beat **slot)
{
    (void)r;
    if (*slot)
        beat_free(*slot);
}

void callback_beat(struct report *r, const char *id, struct buf *body, struct report_beat **slot)
{
    struct callback *cb = (struct callback *)r;
    struct report_beat *b = calloc(1, sizeof *b);
    struct http_ask ask = {.done = on_beat_answer, .user = b};
    struct err e;

    cb->counts.beats_failed += *slot != NULL;
    callback_beat_cancel(r, slot);
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

/*
 * "ready" is told again after it was taken: once more is harmless there, and one that came before
 * the control plane knew of its container is lost.
 */
enum {
    READY_HEARD = 3,        /* so many times in all, */
    READY_UNHEARD_MAX = 40, /* or so many while the answer says that there is no session yet */
};

bool callback_is_unheard(const char *words)
{
    return words && (strcasestr(words, "no session") || strcasestr(words, "session not found"));
}

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

/* A container may be up before the control plane has heard its name. */
static bool is_told_again(const struct telling *t, enum callback_verdict v, bool unheard)
{
    if (v == CALLBACK_RETRY || v == CALLBACK_UNKNOWN)
        return true;
    if (unheard)
        return t->attempts < READY_UNHEARD_MAX;
    return v == CALLBACK_DELIVERED && t->heard < READY_HEARD;
}

static void on_told(void *user, const struct http_answer *a)
{
    struct telling *t = user;
    struct callback *cb = t->cb;
    enum report_event what = (enum report_event)(t - cb->events);
    enum callback_verdict v = callback_judge(a->status);
    bool taken = v == CALLBACK_DELIVERED, unheard = taken && callback_is_unheard(a->words);

    t->post = NULL;
    t->heard += taken && !unheard;
    log_event(cb->log,
              t->heard > 1        ? LOG_DEBUG
              : taken && !unheard ? LOG_INFO
                                  : LOG_WARN,
              !taken    ? "lifecycle_failed"
              : unheard ? "lifecycle_unheard"
                        : "lifecycle_delivered",
              LOG_STR("lifecycle", event_names[what]), LOG_INT("attempt", t->attempts),
              LOG_INT("status_code", a->status), LOG_STR("error", a->error));
    if (what == REPORT_READY && is_told_again(t, v, unheard))
        callback_arm(&t->again, callback_pause_ms(cb, t->attempts, a->retry_after_s));
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

void callback_event(struct report *r, enum report_event what, struct buf *body, report_fn *done,
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
    t->attempts = t->heard = 0;
    (void)snprintf(t->url, sizeof t->url, "%.1800s/containers/%s", cb->root, event_names[what]);
    telling_attempt(t);
}

void callback_tell_init(struct callback *cb)
{
    LIST_INIT(&cb->beats);
    for (size_t i = 0; i < REPORT_EVENT_COUNT; i++) {
        cb->events[i].cb = cb;
        (void)evtimer_assign(&cb->events[i].again, cb->base, on_tell_again, &cb->events[i]);
    }
}

void callback_tell_done(struct callback *cb)
{
    while (!LIST_EMPTY(&cb->beats))
        beat_free(LIST_FIRST(&cb->beats));
    for (size_t i = 0; i < REPORT_EVENT_COUNT; i++) {
        cb->events[i].done = NULL;
        telling_end(&cb->events[i]);
    }
}
