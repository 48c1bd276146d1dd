/* SPDX-License-Identifier: MIT */
/* Timers of a session, and how a call that takes too long ends. */
#include <event2/event.h>

#include "app/daemon/app.h"
#include "app/session/fsession_inner.h"

enum {
    US_PER_MS = 1000,
    CPU_CHECK_MS = 100, /* how often a CPU limit is looked at */
};

static void arm(struct fsession *s, uint64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    (void)event_add(s->timer, &tv);
}

void fsession_rest(struct fsession *s)
{
    s->used_us = clock_us();
    (void)event_del(s->timer);
    if (s->idle_ms > 0)
        arm(s, s->idle_ms);
}

static bool has_cpu_limit(const struct fsession *s)
{
    return s->app->config.cpu_s > 0;
}

/* Until the deadline, with looks at the CPU time on the way if that is limited. */
static void deadline_arm(struct fsession *s)
{
    uint64_t now = clock_us();
    uint64_t left = s->deadline_us > now ? (s->deadline_us - now) / US_PER_MS + 1 : 0;

    arm(s, has_cpu_limit(s) && left > CPU_CHECK_MS ? CPU_CHECK_MS : left);
}

void fsession_deadline(struct fsession *s, uint64_t ms)
{
    s->deadline_us = clock_us() + ms * US_PER_MS;
    deadline_arm(s);
}

void fsession_stop(struct fsession *s, enum end_reason why)
{
    s->state = FSESSION_STOPPING;
    (void)event_del(s->timer);
    run_stop(s->run, why);
}

uint64_t fsession_cpu_us(const struct fsession *s)
{
    struct usage u = USAGE_UNKNOWN;

    if (has_cpu_limit(s))
        run_usage(s->run, &u);
    return u.cpu_us > 0 ? (uint64_t)u.cpu_us : 0;
}

static bool cpu_is_spent(const struct fsession *s)
{
    struct usage u = USAGE_UNKNOWN;

    if (!has_cpu_limit(s) || !s->current)
        return false;
    run_usage(s->run, &u);
    return u.cpu_us >= 0 &&
           (uint64_t)u.cpu_us > s->current->cpu_from_us + s->app->config.cpu_s * 1000 * US_PER_MS;
}

static bool can_be_interrupted(const struct fsession *s)
{
    /* V8 hands no signal to what it runs */
    return !s->program.wasm && !(call_lang((size_t)s->program.lang)->flags & CALL_COMPILED);
}

/* A signal before the program has begun would be nobody's; one after it has answered might be the
 * next one's, so nobody begins before it is known to have been sent. */
static void signal_send(struct fsession *s)
{
    if (s->current->begun && run_interrupt(s->run) == 0)
        s->signalling = true;
}

void fsession_interrupt(struct fsession *s)
{
    struct turn *t = s->current;

    if (s->state != FSESSION_BUSY || t->interrupted || !can_be_interrupted(s))
        return;
    t->interrupted = true;
    run_frames_resume(s->run);
    signal_send(s);
}

void fsession_begun(struct fsession *s)
{
    s->current->begun = true;
    if (s->current->interrupted)
        signal_send(s);
}

static void busy_expired(struct fsession *s)
{
    struct turn *t = s->current;

    if (t->interrupted || !can_be_interrupted(s)) {
        fsession_stop(s, END_TIMEOUT);
        return;
    }
    t->timed_out = true;
    fsession_interrupt(s);
    fsession_deadline(s, s->app->config.fsession_grace_ms);
}

void fsession_on_timer(evutil_socket_t fd, short what, void *user)
{
    struct fsession *s = user;

    (void)fd, (void)what;
    switch (s->state) {
    case FSESSION_LOADING:
    case FSESSION_BUSY:
        if (cpu_is_spent(s))
            fsession_stop(s, END_CPU);
        else if (clock_us() < s->deadline_us)
            deadline_arm(s);
        else if (s->state == FSESSION_LOADING)
            fsession_stop(s, END_TIMEOUT);
        else
            busy_expired(s);
        break;
    case FSESSION_COLLECTING:
    case FSESSION_STOPPING:
        if (clock_us() < s->deadline_us)
            deadline_arm(s);
        else if (s->state == FSESSION_COLLECTING)
            fsession_stop(s, END_FAILED); /* a workspace that has no end */
        else
            run_stop(s->run, END_CANCELLED);
        break;
    case FSESSION_IDLE:
    case FSESSION_DOWN:
        log_event(&s->app->log, LOG_INFO, "session_idle", LOG_STR("session_id", s->id));
        fsession_delete(s);
        break;
    case FSESSION_PREPARING:
    case FSESSION_STATES:
        break;
    }
}
