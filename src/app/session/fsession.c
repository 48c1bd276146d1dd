/* SPDX-License-Identifier: MIT */
#include "app/session/fsession.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/session/fsession.h"

const char *fsession_state_name(enum fsession_state s)
{
    static const char *const names[] = {"preparing",  "loading",  "idle", "busy",
                                        "collecting", "stopping", "down"};

    _Static_assert(ARRAY_LEN(names) == FSESSION_STATES, "every state has a name");
    return names[s];
}

int fsession_find(struct app *a, const char *id, struct fsession **ret, struct err *e)
{
    struct fsession *s;

    TAILQ_FOREACH(s, &a->functions.sessions.list, link)
    {
        if (strcmp(s->id, id) == 0 && s->state != FSESSION_PREPARING) {
            *ret = s;
            return 0;
        }
    }
    return err_set(e, ERR_ABSENT, "there is no session '%.32s'", id);
}

void fsession_move(struct fsession *s, enum fsession_state to)
{
    s->state = to;
}

/* ---- its queue ---- */

void fsession_queue_add(struct fsession *s, struct turn *t)
{
    TAILQ_INSERT_TAIL(&s->queue, t, link);
    s->queued_n++;
}

void fsession_queue_drop(struct fsession *s, struct turn *t)
{
    TAILQ_REMOVE(&s->queue, t, link);
    s->queued_n--;
}

static void queue_end(struct fsession *s, enum end_reason why)
{
    struct turn *t;

    while ((t = TAILQ_FIRST(&s->queue))) {
        fsession_queue_drop(s, t);
        turn_detach(t);
        task_stop(&t->on.task, why);
    }
}

void fsession_queue_fail(struct fsession *s, const struct turn_ending *how)
{
    struct turn *t, *next;

    for (t = TAILQ_FIRST(&s->queue); t; t = next) {
        next = TAILQ_NEXT(t, link);
        if (!turn_is_ready(t))
            continue;
        fsession_queue_drop(s, t);
        turn_detach(t);
        turn_end(t, how);
    }
}

/* Who waits for a process that is not there is not taken before it has the code. */
void fsession_next(struct fsession *s)
{
    struct turn *t = TAILQ_FIRST(&s->queue);

    if (s->ending || s->process.signalling || s->current || !t || !turn_is_ready(t))
        return;
    if (s->state == FSESSION_DOWN && t->facts.kind == TURN_CALL) {
        fsession_start(s);
        return;
    }
    if (s->state != FSESSION_DOWN && s->state != FSESSION_IDLE)
        return;
    fsession_queue_drop(s, t);
    s->current = t;
    t->on.task.result.at.started = clock_us();
    turn_go_on(t);
}

/* ---- life ---- */

void fsession_free(struct fsession *s)
{
    struct fsessions *all = &s->app->functions.sessions;

    queue_end(s, s->app->life.stopping ? END_SHUTDOWN : END_CANCELLED);
    if (s->hidden) {
        TAILQ_REMOVE(&all->ending, s, link);
    } else {
        TAILQ_REMOVE(&all->list, s, link);
        all->n--;
    }
    event_free(s->timer);
    run_free(s->process.run);
    run_result_done(&s->process.result);
    fsession_files_done(s);
    program_done(&s->program);
    free(s);
}

void fsession_end(struct fsession *s, enum end_reason why)
{
    const struct run_result how = {.reason = why};
    struct turn *t = take_ptr(&s->current);

    if (t) {
        turn_detach(t);
        turn_end(t, &(struct turn_ending){.run = &how, .wall_ms = t->wall_ms});
    }
    fsession_free(s);
}

/* It cannot be found any more. */
static void hide(struct fsession *s)
{
    struct fsessions *all = &s->app->functions.sessions;

    if (s->hidden)
        return;
    s->hidden = s->ending = true;
    TAILQ_REMOVE(&all->list, s, link);
    TAILQ_INSERT_TAIL(&all->ending, s, link);
    all->n--;
}

/* Its current turn, if any, ends when the process has; a creation ends the session. */
static void session_end(struct fsession *s, enum end_reason why)
{
    struct turn *t = s->current;
    bool preparing = s->state == FSESSION_PREPARING;

    queue_end(s, why);
    if (s->process.run && (t || fsession_is_beside(s)))
        fsession_stop(s, why);
    else if (preparing)
        task_stop(&t->on.task, why);
    else if (fsession_is_beside(s))
        s->stop_reason = why; /* it comes back and ends */
    else
        fsession_end(s, why);
}

void fsession_delete(struct fsession *s)
{
    hide(s);
    session_end(s, END_CANCELLED);
}

void fsessions_init(struct fsessions *s)
{
    TAILQ_INIT(&s->list);
    TAILQ_INIT(&s->ending);
    TAILQ_INIT(&s->turns);
}

void fsessions_count(const struct fsessions *all, struct metrics *m)
{
    const struct fsession *s;

    m->fsessions = all->n;
    m->fsessions_busy = m->fsession_turns = 0;
    TAILQ_FOREACH(s, &all->list, link)
    {
        m->fsessions_busy += s->current != NULL;
        m->fsession_turns += s->queued_n;
    }
}

void fsessions_stop_all(struct fsessions *all, enum end_reason why)
{
    struct fsession *s, *next;

    for (s = TAILQ_FIRST(&all->list); s; s = next) {
        next = TAILQ_NEXT(s, link);
        hide(s);
        session_end(s, why);
    }
}

/* Without a word to anybody: the worker that would render one is gone. */
static void session_drop(struct fsession *s)
{
    struct turn *t;

    while ((t = TAILQ_FIRST(&s->queue)))
        fsession_queue_drop(s, t);
    s->current = NULL;
    fsession_free(s);
}

void fsessions_done(struct fsessions *all)
{
    struct turn *t;

    while (!TAILQ_EMPTY(&all->list))
        session_drop(TAILQ_FIRST(&all->list));
    while (!TAILQ_EMPTY(&all->ending))
        session_drop(TAILQ_FIRST(&all->ending));
    while ((t = TAILQ_FIRST(&all->turns)))
        turn_free(t);
}
