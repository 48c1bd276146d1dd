/* SPDX-License-Identifier: MIT */
/* Turns of a session: asked for, waiting, taken one at a time. */
#include <string.h>

#include "app/daemon/app.h"
#include "app/session/fsession_inner.h"
#include "base/random.h"

enum { PARSE_INLINE = 1 << 20 }; /* larger bodies do not block the loop */

static void queue_drop(struct fsession *s, struct turn *t)
{
    TAILQ_REMOVE(&s->queue, t, link);
    s->queued_n--;
}

void fsession_queue_end(struct fsession *s, enum end_reason why)
{
    struct turn *t;

    while ((t = TAILQ_FIRST(&s->queue))) {
        queue_drop(s, t);
        turn_detach(t);
        if (t->state == TURN_PARSING) { /* a worker has it */
            t->stopped = true;
            t->stop_reason = why;
        } else {
            turn_unstarted(t, why);
        }
    }
}

void fsession_queue_fail(struct fsession *s, const struct turn *like)
{
    struct turn *t, *next;

    for (t = TAILQ_FIRST(&s->queue); t; t = next) {
        next = TAILQ_NEXT(t, link);
        if (t->state == TURN_PARSING)
            continue;
        queue_drop(s, t);
        turn_take(t, like);
        turn_finish(t, false);
    }
}

void fsession_queue_forget(struct fsession *s)
{
    struct turn *t;

    while ((t = TAILQ_FIRST(&s->queue)))
        queue_drop(s, t);
}

/* ---- taking turns ---- */

static int packet_send(struct fsession *s)
{
    cleanup_with(buf_done) struct buf packet = BUF_INIT(0);
    struct turn *t = s->current;

    s->calls++;
    s->app->metrics.fsession_calls++;
    if (turn_packet(t, s->token, &packet) < 0)
        return -1;
    return run_send(s->run, packet.p, packet.n);
}

static int reload_send(struct fsession *s)
{
    char frame[FRAME_HEAD + FRAME_TOKEN];

    frame_head(frame, FRAME_RELOAD, FRAME_TOKEN);
    memcpy(frame + FRAME_HEAD, s->token, FRAME_TOKEN);
    return run_send(s->run, frame, sizeof frame);
}

/* Its time begins before the packet leaves: a wrapper that ends a call whose time is up says so
 * after our deadline then, however late we are. */
static void send_timed(struct fsession *s, int (*send)(struct fsession *s))
{
    s->current->at.running = clock_us();
    fsession_deadline(s, s->current->wall_ms);
    if (send(s) < 0)
        fsession_stop(s, END_FAILED);
}

void fsession_call_send(struct fsession *s)
{
    send_timed(s, packet_send);
}

static void turn_begin(struct fsession *s, struct turn *t)
{
    if (t->kind == TURN_RESTART) {
        s->restarting = true;
        fsession_stop(s, END_CANCELLED);
        return;
    }
    t->cpu_from_us = fsession_cpu_us(s);
    random_hex(s->token, FRAME_TOKEN / 2);
    s->state = FSESSION_BUSY;
    if (t->kind != TURN_CALL) {
        send_timed(s, reload_send);
        return;
    }
    fsession_deadline(s, t->wall_ms);
    if (t->request.files_n > 0)
        fsession_files_put(s);
    else
        fsession_call_send(s);
}

void fsession_next(struct fsession *s)
{
    struct turn *t = TAILQ_FIRST(&s->queue);

    if (s->ending || s->signalling || s->current || !t || t->state == TURN_PARSING)
        return;
    if (s->state == FSESSION_DOWN && t->kind == TURN_CALL) {
        fsession_start(s);
        return;
    }
    if (s->state != FSESSION_DOWN && s->state != FSESSION_IDLE)
        return;
    queue_drop(s, t);
    s->current = t;
    t->state = TURN_RUNNING;
    t->at.started = clock_us();
    if (s->state == FSESSION_DOWN)
        fsession_start(s);
    else
        turn_begin(s, t);
}

/* ---- asking for one ---- */

static int queue_add(struct fsession *s, enum turn_kind kind, const struct turn_order *o,
                     struct turn **ret, struct err *e)
{
    struct app *a = s->app;
    bool is_free = !s->current && s->queued_n == 0;
    struct turn *t;

    if (a->stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    if (!is_free && s->queued_n >= a->config.fsession_queue_max)
        return err_set(e, ERR_BUSY, "%zu calls are waiting for session '%s' already", s->queued_n,
                       s->id);
    t = turn_new(a, kind, o);
    if (!t)
        return err_set(e, ERR_HOST, "no memory for a call");
    t->workdir = strdup(s->program.request.workdir);
    if (!t->workdir) {
        turn_free(t);
        return err_set(e, ERR_HOST, "no memory for a call");
    }
    t->session = s;
    t->wall_ms = s->wall_ms;
    t->usual = (struct call_reporting){s->program.request.include_changes,
                                       s->program.request.include_contents,
                                       s->program.request.include_denied};
    t->request.include_changes = t->usual.changes; /* a call says so itself */
    t->request.include_contents = t->usual.contents;
    t->request.include_denied = t->usual.denied;
    TAILQ_INSERT_TAIL(&s->queue, t, link);
    s->queued_n++;
    *ret = t;
    return 0;
}

static void parse_run(struct work *w)
{
    struct turn *t = turn_of_work(w);
    struct err e;

    if (turn_parse(t, &e) < 0)
        t->refused = e;
}

/* The turn is a call: is it one that can be made? */
static void call_ready(struct fsession *s, struct turn *t)
{
    struct err e;

    if (turn_bind(t, &e) == 0 && fsession_files_check(s, t, &e) == 0) {
        t->state = TURN_QUEUED;
        return;
    }
    queue_drop(s, t);
    turn_fail(t, &e);
    turn_finish(t, false);
}

static void parse_done(struct work *w)
{
    struct turn *t = turn_of_work(w);
    struct fsession *s = t->session;

    if (!s) {
        turn_unstarted(t, t->stop_reason);
        return;
    }
    if (t->stopped) {
        queue_drop(s, t);
        turn_free(t);
    } else if (t->refused.kind != ERR_NONE) {
        queue_drop(s, t);
        turn_finish(t, true);
    } else {
        call_ready(s, t);
    }
    fsession_next(s);
}

int fsession_call(struct fsession *s, const struct turn_order *o, struct turn **ret, struct err *e)
{
    struct turn *t = NULL;

    if (queue_add(s, TURN_CALL, o, &t, e) < 0)
        return -1;
    if (t->text.n > PARSE_INLINE) {
        t->work = (struct work){.run = parse_run, .done = parse_done};
        work_submit(s->app->work, &t->work);
        *ret = t;
        return 0;
    }
    if (turn_parse(t, e) < 0) {
        queue_drop(s, t);
        turn_free(t);
        return -1;
    }
    *ret = t;
    call_ready(s, t);
    fsession_next(s);
    return 0;
}

int fsession_reset(struct fsession *s, const struct turn_order *o, bool hard, struct turn **ret,
                   struct err *e)
{
    bool soft = !hard && call_lang((size_t)s->program.lang)->flags & CALL_RELOADS;

    if (queue_add(s, soft ? TURN_RELOAD : TURN_RESTART, o, ret, e) < 0)
        return -1;
    (*ret)->state = TURN_QUEUED;
    fsession_next(s);
    return 0;
}

/* ---- leaving ---- */

void turn_resume(struct turn *t)
{
    if (t->session && t->session->current == t && t->session->run)
        run_frames_resume(t->session->run);
}

void turn_abandon(struct turn *t)
{
    struct fsession *s = t->session;

    t->done = NULL;
    t->item = NULL;
    if (!s)
        return;
    if (t->kind == TURN_CREATE) {
        fsession_delete(s);
    } else if (s->current == t) {
        fsession_interrupt(s);
    } else if (t->state == TURN_QUEUED) {
        queue_drop(s, t);
        turn_free(t);
        fsession_next(s);
    } else {
        t->stopped = true; /* a worker has it */
    }
}
