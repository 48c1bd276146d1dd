/* SPDX-License-Identifier: MIT */
#include "core/admission.h"

enum { RETRY_MAX_S = 30 };

void admission_init(struct admission *a, size_t places, size_t queue_max)
{
    *a = (struct admission){.places = places, .queue_max = queue_max, .lane_max = queue_max};
    TAILQ_INIT(&a->queue);
}

void lane_init(struct lane *l, size_t max)
{
    *l = (struct lane){.max = max};
    TAILQ_INIT(&l->behind);
}

static int lane_ask(struct admission *a, struct ticket *t, struct err *e)
{
    struct lane *l = t->lane;

    if (l->behind_n >= a->lane_max || a->queued >= a->queue_max)
        return err_set(e, ERR_BUSY, "%zu executions of the same session are waiting", l->behind_n);
    a->queued++;
    l->behind_n++;
    t->state = TICKET_BEHIND;
    TAILQ_INSERT_TAIL(&l->behind, t, link);
    return 0;
}

/* One of a lane has left it: the next one joins the common queue, at its end. */
static void lane_advance(struct admission *a, struct lane *l)
{
    struct ticket *t = l ? TAILQ_FIRST(&l->behind) : NULL;

    if (l && !t)
        l->ahead--;
    if (!t)
        return;
    TAILQ_REMOVE(&l->behind, t, link);
    l->behind_n--;
    t->state = TICKET_QUEUED;
    TAILQ_INSERT_TAIL(&a->queue, t, link);
}

static int queue_ask(struct admission *a, struct ticket *t, struct err *e)
{
    if (a->granted < a->places && TAILQ_EMPTY(&a->queue)) {
        a->granted++;
        t->state = TICKET_GRANTED;
        return 0;
    }
    if (a->queued >= a->queue_max)
        return err_set(e, ERR_BUSY, "%zu executions are running and %zu are waiting", a->granted,
                       a->queued);
    a->queued++;
    t->state = TICKET_QUEUED;
    TAILQ_INSERT_TAIL(&a->queue, t, link);
    return 0;
}

int admission_ask(struct admission *a, struct ticket *t, struct err *e)
{
    if (t->lane && t->lane->ahead >= t->lane->max)
        return lane_ask(a, t, e);
    if (queue_ask(a, t, e) < 0)
        return -1;
    if (t->lane)
        t->lane->ahead++;
    return 0;
}

static struct ticket *queue_take(struct admission *a)
{
    struct ticket *t = TAILQ_FIRST(&a->queue);

    if (!t || a->granted >= a->places)
        return NULL;
    TAILQ_REMOVE(&a->queue, t, link);
    a->queued--;
    a->granted++;
    t->state = TICKET_GRANTED;
    return t;
}

/* One who is granted may fail at once and leave again: the outermost call carries on for it, so
 * that a queue of failures does not become a stack of calls. */
static void grant_waiting(struct admission *a)
{
    struct ticket *t;

    if (a->granting)
        return;
    a->granting = true;
    for (t = queue_take(a); t; t = queue_take(a))
        t->grant(t->user);
    a->granting = false;
}

void admission_leave(struct admission *a, struct ticket *t)
{
    enum ticket_state was = t->state;

    t->state = TICKET_NONE;
    if (was == TICKET_NONE)
        return;
    if (was == TICKET_BEHIND) {
        TAILQ_REMOVE(&t->lane->behind, t, link);
        t->lane->behind_n--;
        a->queued--;
        return;
    }
    if (was == TICKET_QUEUED) {
        TAILQ_REMOVE(&a->queue, t, link);
        a->queued--;
    } else {
        a->granted--;
    }
    lane_advance(a, t->lane);
    grant_waiting(a);
}

unsigned admission_retry_s(const struct admission *a)
{
    size_t rounds = 1 + a->queued / a->places;

    return rounds < RETRY_MAX_S ? (unsigned)rounds : RETRY_MAX_S;
}
