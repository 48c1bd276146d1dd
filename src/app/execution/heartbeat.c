/* SPDX-License-Identifier: MIT */
#include "app/execution/heartbeat.h"

#include <event2/event.h>

#include "app/daemon/app.h"
#include "base/json.h"
#include "base/jw.h"

enum { BEAT_OVERHEAD = 256 };

/* Written by a tenant: only a JSON object travels. */
static void write_progress(struct jw *w, const struct execution *x)
{
    const struct buf *b = &x->task.result.progress;
    struct json_value v;
    struct err e;

    jw_key(w, "progress");
    if (b->n > 0 && json_parse(b->p, b->n, 0, &v, &e) == 0 && v.type == JSON_OBJECT) {
        jw_raw(w, v.p, v.n);
        return;
    }
    jw_object(w);
    jw_kv_string(w, "status", execution_state_name(x));
    jw_object_end(w);
}

static void beat(struct execution *x)
{
    struct report *r = x->app->report;
    struct buf body = BUF_INIT(BEAT_OVERHEAD + x->task.result.progress.n);
    struct jw w = JW(&body);
    char now[CLOCK_ISO_MAX];

    jw_object(&w);
    jw_kv_string(&w, "timestamp", clock_iso(now));
    write_progress(&w, x);
    jw_object_end(&w);
    r->ops->beat(r, x->id, &body, &x->heart.under_way);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    beat(user);
}

void heart_start(struct execution *x)
{
    struct app *a = x->app;
    struct timeval tv = {.tv_sec = (time_t)a->config.heartbeat_s};

    if (!a->report || x->heart.timer)
        return;
    x->heart.timer = event_new(a->base, -1, EV_PERSIST, on_timer, x);
    if (!x->heart.timer || event_add(x->heart.timer, &tv) < 0) {
        log_event(&a->log, LOG_WARN, "heartbeat_failed", LOG_STR("execution_id", x->id),
                  LOG_STR("error", "no memory for an event"));
        return;
    }
    beat(x);
}

void heart_now(struct execution *x)
{
    if (x->heart.timer)
        beat(x);
}

void heart_stop(struct execution *x)
{
    struct report *r = x->app->report;

    if (x->heart.timer)
        event_free(take_ptr(&x->heart.timer));
    if (r && x->heart.under_way)
        r->ops->beat_cancel(r, &x->heart.under_way);
}
