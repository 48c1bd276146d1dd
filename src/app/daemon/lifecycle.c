/* SPDX-License-Identifier: MIT */
#include "app/daemon/lifecycle.h"

#include <event2/event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "app/daemon/app.h"
#include "base/jw.h"
#include "net/webhook.h"

enum { EVENT_JSON_MAX = 8192 };

struct lifecycle {
    struct app *app; /* borrowed */
    lifecycle_fn *ended;
    void *user;
    struct event *grace, *deadline; /* owned */
    int exit_code;
    uint16_t port;
    bool drained, idle, settling;
    unsigned unsettled; /* what still delivers */
};

const char *lifecycle_reason(int exit_code)
{
    static const struct {
        int code;
        const char *name;
    } rows[] = {
        {0,   "normal"    },
        {134, "oom_killed"},
        {137, "sigkill"   },
        {143, "sigterm"   },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].code == exit_code)
            return rows[i].name;
    }
    return "error";
}

/* All eight members, always: those of the other event are null. */
static void event_json(const struct lifecycle *l, enum report_event what, struct buf *out)
{
    const struct config *c = &l->app->config;
    bool ready = what == REPORT_READY;
    struct jw w = JW(out);
    char now[CLOCK_ISO_MAX];

    clock_iso(now);
    jw_object(&w);
    jw_kv_string(&w, "event_type", ready ? "ready" : "exited");
    jw_kv_string(&w, "container_id", c->container_id);
    jw_kv_string(&w, "pod_name", c->pod_name);
    jw_kv_int(&w, "executor_port", l->port);
    jw_kv_string(&w, "ready_at", ready ? now : NULL);
    jw_key(&w, "exit_code");
    if (ready)
        jw_null(&w);
    else
        jw_int(&w, l->exit_code);
    jw_kv_string(&w, "exit_reason", ready ? NULL : lifecycle_reason(l->exit_code));
    jw_kv_string(&w, "exited_at", ready ? NULL : now);
    jw_object_end(&w);
}

static void tell(struct lifecycle *l, enum report_event what, report_fn *done)
{
    struct report *r = l->app->report;
    struct buf body = BUF_INIT(EVENT_JSON_MAX);

    event_json(l, what, &body);
    r->ops->event(r, what, &body, done, l);
}

void lifecycle_ready(struct lifecycle *l, uint16_t port)
{
    l->port = port;
    if (l->app->report)
        tell(l, REPORT_READY, NULL);
}

/* ---- ending ---- */

static void on_told(void *user)
{
    struct lifecycle *l = user;

    l->ended(l->user);
}

static void on_quiet(void *user)
{
    struct lifecycle *l = user;

    if (--l->unsettled > 0)
        return;
    (void)event_del(l->deadline);
    if (l->app->report)
        tell(l, REPORT_EXITED, on_told);
    else
        l->ended(l->user);
}

static void settle(struct lifecycle *l)
{
    struct report *r = l->app->report;

    if (l->settling)
        return;
    l->settling = true;
    l->unsettled = 1 + (r != NULL) + (l->app->webhooks != NULL);
    if (r)
        r->ops->settle(r, on_quiet, l);
    if (l->app->webhooks)
        webhooks_settle(l->app->webhooks, on_quiet, l);
    on_quiet(l);
}

static void settle_when_done(struct lifecycle *l)
{
    if (l->drained && l->idle)
        settle(l);
}

static void on_idle(void *user)
{
    struct lifecycle *l = user;

    l->idle = true;
    settle_when_done(l);
}

void lifecycle_drained(struct lifecycle *l)
{
    l->drained = true;
    settle_when_done(l);
}

/* First the executions lose their patience, then we do. */
static void on_grace(evutil_socket_t fd, short what, void *user)
{
    struct lifecycle *l = user;
    const struct timeval last = {.tv_sec = LIFECYCLE_DELIVER_S};

    (void)fd, (void)what;
    (void)event_add(l->deadline, &last);
    app_stop_all(l->app, END_SHUTDOWN);
}

static void on_deadline(evutil_socket_t fd, short what, void *user)
{
    struct lifecycle *l = user;
    struct report *r = l->app->report;

    (void)fd, (void)what;
    settle(l);
    if (r)
        r->ops->hurry(r);
    if (l->app->webhooks)
        webhooks_hurry(l->app->webhooks);
}

static void on_hard_stop(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    _exit(info->si_value.sival_int);
}

/* A disk that hangs must not keep us: the kernel's own timer ends the process, loop or not. */
static void hard_stop_arm(int exit_code, time_t seconds)
{
    struct sigaction action = {.sa_sigaction = on_hard_stop, .sa_flags = SA_SIGINFO};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGALRM,
                             .sigev_value = {.sival_int = exit_code}};
    struct itimerspec at = {.it_value = {.tv_sec = seconds}};
    timer_t timer;

    if (sigaction(SIGALRM, &action, NULL) < 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 || timer_settime(timer, 0, &at, NULL) < 0)
        (void)alarm((unsigned)seconds);
}

void lifecycle_stop(struct lifecycle *l, int exit_code)
{
    struct timeval tv = {.tv_sec = (time_t)l->app->config.shutdown_grace_s};

    hard_stop_arm(exit_code, tv.tv_sec + LIFECYCLE_AFTER_S);
    l->exit_code = exit_code;
    (void)event_add(l->grace, &tv);
    app_refuse_new(l->app);
    app_stop_unattended(l->app, END_SHUTDOWN);
    app_on_idle(l->app, on_idle, l);
}

/* ---- opening ---- */

int lifecycle_open(struct app *a, lifecycle_fn *ended, void *user, struct lifecycle **ret,
                   struct err *e)
{
    struct lifecycle *l = calloc(1, sizeof *l);

    if (!l)
        return err_set(e, ERR_HOST, "no memory for the life cycle");
    l->app = a;
    l->ended = ended;
    l->user = user;
    l->grace = evtimer_new(a->base, on_grace, l);
    l->deadline = evtimer_new(a->base, on_deadline, l);
    if (!l->grace || !l->deadline) {
        lifecycle_close(l);
        return err_set(e, ERR_HOST, "no memory for events");
    }
    *ret = l;
    return 0;
}

void lifecycle_close(struct lifecycle *l)
{
    if (!l)
        return;
    if (l->grace)
        event_free(l->grace);
    if (l->deadline)
        event_free(l->deadline);
    free(l);
}
