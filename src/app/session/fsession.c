/* SPDX-License-Identifier: MIT */
#include "app/session/fsession.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/session/fsession_inner.h"
#include "base/random.h"

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

    TAILQ_FOREACH(s, &a->fsessions.list, link)
    {
        if (strcmp(s->id, id) == 0 && s->state != FSESSION_PREPARING) {
            *ret = s;
            return 0;
        }
    }
    return err_set(e, ERR_ABSENT, "there is no session '%.32s'", id);
}

/* ---- life ---- */

int fsession_init(struct fsession *s, struct app *a)
{
    s->timer = evtimer_new(a->base, fsession_on_timer, s);
    if (!s->timer)
        return -1;
    s->app = a;
    TAILQ_INIT(&s->queue);
    (void)memcpy(s->id, "sess_", 5);
    random_base36(s->id + 5, FSESSION_ID_RANDOM);
    (void)clock_iso(s->created_at);
    TAILQ_INSERT_TAIL(&a->fsessions.list, s, link);
    a->fsessions.n++;
    return 0;
}

void fsession_free(struct fsession *s)
{
    struct fsessions *all = &s->app->fsessions;

    fsession_queue_end(s, s->app->stopping ? END_SHUTDOWN : END_CANCELLED);
    if (s->hidden) {
        TAILQ_REMOVE(&all->ending, s, link);
    } else {
        TAILQ_REMOVE(&all->list, s, link);
        all->n--;
    }
    fsession_make_stop(s);
    event_free(s->timer);
    run_free(s->run);
    run_result_done(&s->result);
    fsession_files_done(s);
    program_done(&s->program);
    free(s);
}

/* It cannot be found any more. */
static void hide(struct fsession *s)
{
    struct fsessions *all = &s->app->fsessions;

    if (s->hidden)
        return;
    s->hidden = s->ending = true;
    TAILQ_REMOVE(&all->list, s, link);
    TAILQ_INSERT_TAIL(&all->ending, s, link);
    all->n--;
}

/* Its current turn, if any, ends when the process has. */
static void session_end(struct fsession *s, enum end_reason why)
{
    struct turn *t = s->current;

    fsession_queue_end(s, why);
    if (t && t->state == TURN_PARSING) { /* a worker has it */
        t->stopped = true;
        t->stop_reason = why;
    } else if (s->run && (t || fsession_is_beside(s))) {
        fsession_stop(s, why);
    } else if (fsession_is_beside(s)) {
        s->stop_reason = why; /* it comes back and ends */
    } else {
        if (t) {
            s->current = NULL;
            turn_unstarted(t, why);
        }
        fsession_free(s);
    }
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
    fsession_queue_forget(s);
    s->current = NULL;
    fsession_free(s);
}

void fsessions_done(struct fsessions *all)
{
    struct turn *t;

    TAILQ_FOREACH(t, &all->turns, all_link)
    t->done = NULL;
    while (!TAILQ_EMPTY(&all->list))
        session_drop(TAILQ_FIRST(&all->list));
    while (!TAILQ_EMPTY(&all->ending))
        session_drop(TAILQ_FIRST(&all->ending));
    while ((t = TAILQ_FIRST(&all->turns)))
        turn_free(t);
}
