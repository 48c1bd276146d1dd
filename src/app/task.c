/* SPDX-License-Identifier: MIT */
#include "app/task.h"

#include <assert.h>
#include <stdio.h>

/* clang-format off */
static const struct {
    const char *name;
    unsigned next; /* legal successors */
} states[] = {
    [TASK_PREPARING]  = {"preparing",  BIT(TASK_QUEUED) | BIT(TASK_STARTING) | BIT(TASK_COLLECTING) | BIT(TASK_DONE)},
    [TASK_QUEUED]     = {"queued",     BIT(TASK_STARTING) | BIT(TASK_COLLECTING) | BIT(TASK_DONE)},
    [TASK_STARTING]   = {"starting",   BIT(TASK_RUNNING) | BIT(TASK_COLLECTING) | BIT(TASK_DONE)},
    [TASK_RUNNING]    = {"running",    BIT(TASK_STARTING) | BIT(TASK_COLLECTING) | BIT(TASK_DONE)},
    [TASK_COLLECTING] = {"collecting", BIT(TASK_DONE)},
    [TASK_DONE]       = {"done",       0},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(states) == TASK_STATE_COUNT, "every state has a row");

const char *task_state_name(enum task_state s)
{
    return states[s].name;
}

static void task_move(struct task *t, enum task_state to)
{
    assert(states[t->state].next & BIT(to));
    t->state = to;
}

/* ---- the end ---- */

void task_release(struct task *t)
{
    run_free(take_ptr(&t->run));
    admission_leave(t->host->admission, &t->ticket);
}

static void leave(struct run_after *a)
{
    struct task *t = container_of(a, struct task, after);

    task_release(t);
    TAILQ_REMOVE(&t->host->active, t, link);
    t->begun = false;
    t->kind->account(t);
}

static void answer(struct task *t)
{
    task_move(t, TASK_DONE);
    t->kind->answer(t);
    run_after(t->engine, &t->after, leave);
}

static void answer_after(struct run_after *a)
{
    answer(container_of(a, struct task, after));
}

/* ---- steps ---- */

static void step_over(struct task *t, enum task_go how)
{
    t->waiting = false;
    t->step++;
    if (how == TASK_NEXT && !t->stopped)
        return;
    t->ending = true;
    if (t->stopped && !task_ran(t))
        t->result.reason = t->stop_reason;
}

/* Begins steps until one waits; true: all of them are over. */
static bool drive(struct task *t)
{
    while (t->step < t->kind->steps_n) {
        const struct task_step *s = &t->kind->steps[t->step];
        enum task_go how;

        if (t->ending && !s->always) {
            t->step++;
            continue;
        }
        if (t->state != s->state)
            task_move(t, s->state);
        t->waiting = t->beginning = true;
        t->early = TASK_WAIT;
        how = s->begin(t, &t->refused);
        t->beginning = false;
        if (how == TASK_WAIT)
            how = t->early;
        if (how == TASK_WAIT)
            return false;
        step_over(t, how);
        if (how == TASK_REFUSE)
            return false;
    }
    return true;
}

int task_begin(struct task *t, struct err *e)
{
    TAILQ_INSERT_TAIL(&t->host->active, t, link);
    t->begun = true;
    if (drive(t)) {
        run_after(t->engine, &t->after, answer_after);
    } else if (!t->waiting) {
        *e = t->refused;
        TAILQ_REMOVE(&t->host->active, t, link);
        t->begun = false;
        return -1;
    }
    return 0;
}

void task_continue(struct task *t, enum task_go how)
{
    assert(t->waiting);
    if (t->beginning) {
        t->early = how;
        return;
    }
    for (step_over(t, how); !drive(t);)
        if (t->waiting)
            return;
    answer(t);
}

bool task_waits_in(const struct task *t, task_begin_fn *step)
{
    return t->waiting && t->kind->steps[t->step].begin == step;
}

void task_stop(struct task *t, enum end_reason why)
{
    const struct task_step *s = &t->kind->steps[t->step];

    if (t->stopped || !t->waiting || t->state >= TASK_COLLECTING)
        return;
    t->stopped = true;
    t->stop_reason = why;
    if (t->state == TASK_RUNNING) {
        run_stop(t->run, why);
        return;
    }
    if (s->begin == task_admit)
        admission_leave(t->host->admission, &t->ticket);
    else if (s->stop)
        s->stop(t);
    else
        return;
    step_over(t, TASK_END);
    if (drive(t))
        run_after(t->engine, &t->after, answer_after);
}

/* ---- for steps ---- */

enum task_go task_admit(struct task *t, struct err *e)
{
    if (t->under_other)
        return TASK_NEXT;
    if (admission_ask(t->host->admission, &t->ticket, e) < 0) {
        ++*t->host->refused;
        return TASK_REFUSE;
    }
    return t->ticket.state == TICKET_GRANTED ? TASK_NEXT : TASK_WAIT;
}

static void on_grant(void *user)
{
    task_continue(user, TASK_NEXT);
}

static void on_run_done(void *user)
{
    task_continue(user, TASK_NEXT);
}

enum task_go task_run(struct task *t, const struct plan *p, const struct run_events *events,
                      struct run_result *result)
{
    struct run_events mine = *events;
    struct err e;

    mine.done = on_run_done;
    mine.user = t;
    run_free(take_ptr(&t->run));
    if (run_start(t->engine, p, result ? result : &t->result, &mine, &t->run, &e) < 0)
        return task_fail(t, END_FAILED, e.text);
    task_move(t, TASK_RUNNING);
    return TASK_WAIT;
}

enum task_go task_run_plan(struct task *t, const struct run_events *events)
{
    enum task_go how = task_run(t, t->plan, events, NULL);

    t->plan_free(take_ptr(&t->plan));
    return how;
}

static void beside_run(struct work *w)
{
    struct task *t = container_of(w, struct task, work);

    t->beside(t);
}

static void beside_done(struct work *w)
{
    task_continue(container_of(w, struct task, work), TASK_NEXT);
}

enum task_go task_beside(struct task *t, task_fn *fn, enum work_lane lane)
{
    t->beside = fn;
    t->work = (struct work){.run = beside_run, .done = beside_done, .lane = lane};
    work_submit(t->host->work, &t->work);
    return TASK_WAIT;
}

enum task_go task_fail(struct task *t, enum end_reason why, const char *words)
{
    t->result.reason = why;
    (void)snprintf(t->result.fault, sizeof t->result.fault, "%s", words);
    return TASK_END;
}

/* ---- life ---- */

void task_host_init(struct task_host *h, struct admission *a, struct work_pool *w,
                    uint64_t *refused)
{
    *h = (struct task_host){.admission = a, .work = w, .refused = refused};
    TAILQ_INIT(&h->active);
}

void task_init(struct task *t, const struct task_kind *kind, struct task_host *h,
               struct run_engine *engine)
{
    t->kind = kind;
    t->host = h;
    t->engine = engine;
    t->ticket.grant = on_grant;
    t->ticket.user = t;
    run_result_init(&t->result, &t->limits);
}

void task_init_done(struct task *t, const struct task_kind *kind, struct task_host *h,
                    struct run_engine *engine)
{
    task_init(t, kind, h, engine);
    task_move(t, TASK_DONE);
}

void task_done(struct task *t)
{
    if (t->begun)
        TAILQ_REMOVE(&t->host->active, t, link);
    t->begun = false;
    task_release(t);
    if (t->plan)
        t->plan_free(take_ptr(&t->plan));
    run_result_done(&t->result);
}
