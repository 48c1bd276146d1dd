/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "jail/launched.h"

void pool_refill_later(struct launched *n, unsigned ms)
{
    const struct timeval t = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    if (!event_pending(&n->refill, EV_TIMEOUT, NULL))
        (void)event_add(&n->refill, &t);
}

static unsigned failures_max(const struct pool *p, enum plan_template t)
{
    return template_is_lazy(t) && !p->proven ? TRIALS_MAX : FAILURES_MAX;
}

/* Logged once. Programs of this template still run, in an interpreter started for each. */
static void tell_cold(struct launched *n, enum plan_template t)
{
    if (n->jail.cannot_warm & BIT(t))
        return;
    n->jail.cannot_warm |= BIT(t);
    n->jail.warm &= ~BIT(t);
    log_event(n->log, LOG_WARN, "template_cannot_warm", LOG_STR("template", jail_template_name(t)),
              LOG_STR("detail",
                      "its interpreter ended before it was ready; what it wrote is in this "
                      "log. Programs that want it start an interpreter of their own"));
}

void pool_lost(struct box *b)
{
    struct launched *n = b->jail;
    enum plan_template t = b->sandbox.template;
    struct pool *p = &n->pools[t];

    p->failures++;
    if (p->failures >= failures_max(p, t))
        tell_cold(n, t);
    box_unpool(b);
    box_close(b);
    box_settle(b);
    pool_refill_later(n, p->failures >= FAILURES_MAX ? RETRY_MS : 0);
}

/* Its control socket is not watched any more: the launcher reports its end. */
static void pool_ready(struct box *b, const struct init_msg *m)
{
    struct pool *p = &b->jail->pools[b->sandbox.template];

    b->ready = true;
    b->sandbox.writable = (unsigned)m->arg;
    b->since = clock_us();
    p->ready++;
    p->failures = 0;
    if (!p->proven)
        pool_refill_later(b->jail, 0); /* the trial went well: now as many as are wanted */
    p->proven = true;
    b->trial = false;
    b->jail->jail.warm |= BIT(b->sandbox.template);
    b->jail->jail.cannot_warm &= ~BIT(b->sandbox.template);
    (void)event_del(&b->ctl);
}

/* A message of a pooled box: READY; anything else means that it failed or is gone. */
static void on_pooled(evutil_socket_t fd, short what, void *user)
{
    char bytes[sizeof(struct init_msg) + FAILURE_MAX];
    struct box *b = user;
    ssize_t got = fd_recv(fd, bytes, sizeof bytes, NULL, NULL);
    struct init_msg m = {0};

    (void)what;
    if (got == -EAGAIN)
        return;
    if (got >= (ssize_t)sizeof m)
        memcpy(&m, bytes, sizeof m);
    if (m.verb == INIT_READY)
        pool_ready(b, &m);
    else
        pool_lost(b);
}

static void pool_add(struct launched *n, enum plan_template t)
{
    bool persistent = template_is_persistent(t);
    const struct sandbox_spec s = {.template = t,
                                   .limits = persistent ? &n->persistent : &n->limits,
                                   .persistent = persistent};
    struct pool *p = &n->pools[t];
    struct box *b;
    struct err e;

    if (box_new(n, &s, &b, &e) < 0) {
        log_event(n->log, LOG_WARN, "pool_refill_failed", LOG_STR("error", e.text));
        pool_refill_later(n, RETRY_MS);
        return;
    }
    b->pooled = true;
    b->trial = !p->proven;
    TAILQ_INSERT_TAIL(&p->waiting, b, pool);
    p->n++;
    (void)event_assign(&b->ctl, n->loop, b->sandbox.ctl, EV_READ | EV_PERSIST, on_pooled, b);
    (void)event_add(&b->ctl, NULL);
}

static unsigned pool_want(const struct pool *p, enum plan_template t)
{
    if (template_is_lazy(t))
        return p->asked && p->failures < failures_max(p, t)
                   ? (p->proven || p->target == 0 ? p->target : 1)
                   : 0;
    if (p->failures >= FAILURES_MAX || (!p->proven && p->target == 0))
        return 1;
    return p->target;
}

void pool_on_refill(evutil_socket_t fd, short what, void *user)
{
    struct launched *n = user;

    (void)fd, (void)what;
    for (unsigned t = 0; t < TEMPLATE_COUNT && n->sock >= 0; t++) {
        struct pool *p = &n->pools[t];
        unsigned want = pool_want(p, (enum plan_template)t);

        if (n->jail.templates & BIT(t))
            for (unsigned have = p->n; have < want; have++)
                pool_add(n, (enum plan_template)t);
    }
}

/* ---- demand ---- */

static uint64_t megabytes_wanted(const struct launched *n)
{
    uint64_t sum = 0;

    for (size_t t = 0; t < TEMPLATE_COUNT; t++)
        if (n->pools[t].asked || !template_is_lazy((enum plan_template)t))
            sum += (uint64_t)n->pools[t].target * templates[t].megabytes;
    return sum;
}

static void calm_later(struct launched *n)
{
    const struct timeval t = {.tv_sec = (time_t)n->pool_calm_s};

    if (!event_pending(&n->calm, EV_TIMEOUT, NULL))
        (void)event_add(&n->calm, &t);
}

/*
 * take() found no ready sandbox. After a burst the pool grows by one, if there is memory for it.
 * It does not grow where runs come faster than sandboxes can be made: it would only be empty more
 * often. It never holds more than were in use at once: a sandbox that waits longer is colder in the
 * processor's caches. A pool with a size of 0 stays empty. Persistent sandboxes are used for long:
 * how many there are says nothing about how many will be wanted.
 */
static void pool_missed(struct launched *n, enum plan_template t)
{
    struct pool *p = &n->pools[t];

    p->missed_us = clock_us();
    if (p->least == 0 || template_is_persistent(t) || p->used < p->target ||
        p->missed_us - p->full_us > BURST_US ||
        megabytes_wanted(n) + templates[t].megabytes > n->pool_memory_mb)
        return;
    p->target++;
    calm_later(n);
}

/* By half of what it has grown. The youngest sandboxes are closed. */
static void pool_shrink(struct pool *p, uint64_t now)
{
    struct box *b;

    p->missed_us = now;
    p->target -= (p->target - p->least + 1) / 2;
    while (p->n > p->target && (b = TAILQ_LAST(&p->waiting, boxes))) {
        box_unpool(b);
        box_close(b);
        box_settle(b);
    }
}

void pool_on_calm(evutil_socket_t fd, short what, void *user)
{
    struct launched *n = user;
    uint64_t now = clock_us();

    (void)fd, (void)what;
    for (size_t t = 0; t < TEMPLATE_COUNT; t++) {
        struct pool *p = &n->pools[t];

        if (p->target > p->least && now - p->missed_us >= n->pool_calm_s * 1000000)
            pool_shrink(p, now);
        if (p->target > p->least)
            calm_later(n);
    }
}

static bool fits_pool(const struct launched *n, const struct sandbox_spec *s)
{
    bool persistent = template_is_persistent(s->template);
    const struct limits *a = s->limits, *b = persistent ? &n->persistent : &n->limits;

    return !s->workspace && s->persistent == persistent && !s->host_network && !s->dirs &&
           !s->dependencies && !s->lazy && a->memory_max == b->memory_max &&
           a->workspace_max == b->workspace_max && a->workspace_files == b->workspace_files &&
           a->tmp_max == b->tmp_max && a->pids_max == b->pids_max;
}

/* The youngest that is ready: most of it is still in the processor's caches. If the oldest has
 * waited for STALE_US, that one: sandboxes should not be much older than their template. */
static struct box *ready_one(const struct pool *p)
{
    struct box *oldest, *b;

    if (p->ready == 0)
        return NULL;
    TAILQ_FOREACH(oldest, &p->waiting, pool)
    if (oldest->ready)
        break;
    if (!oldest || clock_us() - oldest->since > STALE_US)
        return oldest;
    TAILQ_FOREACH_REVERSE(b, &p->waiting, boxes, pool)
    if (b->ready)
        break;
    return b;
}

/* One that is ready, else the one that was asked for first. */
struct box *pool_take(struct launched *n, const struct sandbox_spec *s)
{
    struct pool *p = &n->pools[s->template];
    struct box *b;

    if (!fits_pool(n, s))
        return NULL;
    if (p->ready >= p->target)
        p->full_us = clock_us();
    b = ready_one(p);
    if (!b)
        b = TAILQ_FIRST(&p->waiting);
    if (!b || !b->ready)
        pool_missed(n, s->template);
    if (b)
        box_unpool(b);
    return b;
}

/* False while its zygote is still starting, or when it fails. */
bool pool_can_warm(const struct launched *n, enum plan_template t)
{
    const struct pool *p = &n->pools[t];

    return (n->jail.templates & BIT(t)) && p->proven && p->failures < FAILURES_MAX;
}
