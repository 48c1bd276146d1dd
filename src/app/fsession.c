/* SPDX-License-Identifier: MIT */
#include "app/fsession.h"

#include <event2/event.h>
#include <string.h>

#include "app/app.h"
#include "app/call_compile.h"
#include "app/fsession_inner.h"
#include "base/random.h"
#include "lang/lang_call.h"

enum {
    US_PER_MS = 1000,
    CPU_CHECK_MS = 100,     /* how often a CPU limit is looked at */
    PARSE_INLINE = 1 << 20, /* larger bodies do not block the loop */
    RUNTIME_MS = 60000,     /* a WebAssembly runtime that is used for the first time has to start */
    FAREWELL_MS = 2000,     /* a program that said it ends has so long to do it */
};

const char *fsession_state_name(enum fsession_state s)
{
    static const char *const names[] = {"preparing", "loading", "idle", "busy", "stopping", "down"};

    _Static_assert(ARRAY_LEN(names) == FSESSION_STATES, "every state has a name");
    return names[s];
}

/* ---- timers ---- */

static void arm(struct fsession *s, uint64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000) * 1000};

    (void)event_add(s->timer, &tv);
}

/* From now on the session does nothing. */
static void idle_arm(struct fsession *s)
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

static void deadline_set(struct fsession *s, uint64_t ms)
{
    s->deadline_us = clock_us() + ms * US_PER_MS;
    deadline_arm(s);
}

static void process_stop(struct fsession *s, enum end_reason why)
{
    s->state = FSESSION_STOPPING;
    (void)event_del(s->timer);
    run_stop(s->run, why);
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
    return !s->wasm && !(call_lang((size_t)s->lang)->flags & CALL_COMPILED);
}

/* A signal before the program has begun would be nobody's; one after it has answered might be the
 * next one's, so nobody begins before it is known to have been sent. */
static void signal_send(struct fsession *s)
{
    if (s->current->begun && run_interrupt(s->run) == 0)
        s->signalling = true;
}

/* First a word, then force. */
static void turn_interrupt(struct fsession *s)
{
    struct turn *t = s->current;

    if (s->state != FSESSION_BUSY || t->interrupted || !can_be_interrupted(s))
        return;
    t->interrupted = true;
    run_frames_resume(s->run);
    signal_send(s);
}

static void on_begun(struct fsession *s)
{
    s->current->begun = true;
    if (s->current->interrupted)
        signal_send(s);
}

static void busy_expired(struct fsession *s)
{
    struct turn *t = s->current;

    if (t->interrupted || !can_be_interrupted(s)) {
        process_stop(s, END_TIMEOUT);
        return;
    }
    t->timed_out = true;
    turn_interrupt(s);
    deadline_set(s, s->app->config.fsession_grace_ms);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct fsession *s = user;

    (void)fd, (void)what;
    switch (s->state) {
    case FSESSION_LOADING:
    case FSESSION_BUSY:
        if (cpu_is_spent(s))
            process_stop(s, END_CPU);
        else if (clock_us() < s->deadline_us)
            deadline_arm(s);
        else if (s->state == FSESSION_LOADING)
            process_stop(s, END_TIMEOUT);
        else
            busy_expired(s);
        break;
    case FSESSION_STOPPING:
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

/* ---- turns ---- */

/* Its answer is complete. What was printed before it is in the pipes by now. */
static void turn_over(struct fsession *s, struct turn *t)
{
    s->current = NULL;
    t->at.ended = clock_us();
    run_output_read(s->run);
    run_output_take(s->run, &t->output);
    turn_finish(t, true);
    s->lost = false;
    s->lost_reason = NULL;
}

/* It never began. */
static void turn_unstarted(struct turn *t, enum end_reason why)
{
    struct run_result r = {.reason = why};

    turn_end_as(t, &r);
    turn_finish(t, false);
}

static void queue_drop(struct fsession *s, struct turn *t)
{
    TAILQ_REMOVE(&s->queue, t, link);
    s->queued_n--;
}

static void queue_end(struct fsession *s, enum end_reason why)
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

/* It ended like this; `like` is no turn but has the outcome of one. */
static void turn_take(struct turn *t, const struct turn *like)
{
    t->outcome = like->outcome;
    t->reason = like->reason;
    t->signal = like->signal;
    if (like->error.n > 0)
        (void)buf_put(&t->error, like->error.p, like->error.n);
}

/* The code could not be loaded: whoever waited for it hears why. */
static void queue_fail(struct fsession *s, const struct turn *like)
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

/* ---- a process ---- */

static void on_ready(void *user);
static void on_frame(void *user, char kind, const char *p, size_t n);
static void on_interrupted(void *user);
static void on_run_done(void *user);

static int process_open(struct fsession *s, struct err *e)
{
    struct call_args none = {0};
    struct lang_call spec = {
        .id = s->id,
        .lang = (enum call_lang_id)s->lang,
        .request = &s->request,
        .options_at = -1,
        .stays = true,
        .token = s->token,
        .mode = CALL_MODE_INLINE,
        .args = &none,
        .limits = s->limits,
        .wasm = s->wasm,
        .dirs = s->dirs.n > 0 ? s->dirs.p : NULL,
    };

    if (s->build)
        spec.program = (struct bytes){s->build->program.p, s->build->program.n};
    struct run_events events = {
        .ready = on_ready,
        .frame = on_frame,
        .interrupted = on_interrupted,
        .done = on_run_done,
        .user = s,
    };
    struct plan *plan = NULL;
    int r;

    random_hex(s->token, FRAME_TOKEN / 2);
    run_result_done(&s->result);
    run_result_init(&s->result, &s->limits);
    if (lang_call_plan(&spec, &plan, e) < 0)
        return -1;
    r = run_start(s->where.engine, plan, &s->result, &events, &s->run, e);
    lang_call_free(plan);
    return r;
}

static void start_failed(struct fsession *s, const char *words)
{
    struct turn like = {.app = s->app}, *t = take_ptr(&s->current);

    s->state = FSESSION_DOWN;
    s->token[0] = '\0';
    log_event(&s->app->log, LOG_ERROR, "session_failed", LOG_STR("session_id", s->id),
              LOG_STR("error", words));
    turn_fail(&like, "SandboxError", words);
    queue_fail(s, &like);
    idle_arm(s);
    if (!t)
        return;
    s->ending |= t->kind == TURN_CREATE;
    turn_take(t, &like);
    turn_finish(t, false);
    if (s->ending)
        fsession_free(s);
}

void fsession_start(struct fsession *s)
{
    struct err e;

    s->forged = s->farewell = s->signalling = s->loaded = s->restarting = false;
    s->generation++;
    if (process_open(s, &e) < 0) {
        start_failed(s, e.text);
        return;
    }
    s->state = FSESSION_LOADING;
    if (s->current) {
        s->current->at.started = s->result.at.started;
        s->current->at.running = s->result.at.running;
    }
    deadline_set(s, s->wall_ms + (s->wasm && !s->result.warm ? RUNTIME_MS : 0));
}

/* ---- what the program says ---- */

static void on_ready(void *user)
{
    struct fsession *s = user;

    if (s->state != FSESSION_LOADING)
        return;
    if (s->current)
        s->current->at.running = s->result.at.running;
    deadline_set(s, s->wall_ms);
}

static void forged(struct fsession *s)
{
    s->forged = true;
    s->token[0] = '\0'; /* what is true comes too late now */
    process_stop(s, END_POLICY);
}

static void on_item(struct fsession *s, const char *p, size_t n)
{
    struct turn *t = s->current;
    struct json_value v;
    struct err e;

    if (!t || !t->stream || json_parse(p, n, 0, &v, &e) < 0) {
        forged(s);
        return;
    }
    if (t->item && !t->interrupted && !t->item(t->user, t->items, p, n))
        run_frames_pause(s->run);
    t->items++;
}

/* The end of a turn, or of loading without one. */
static void on_answer(struct fsession *s, struct buf *into, const char *p, size_t n)
{
    struct turn *t = s->current;

    s->token[0] = '\0';
    s->loaded = true;
    if (t) {
        if (into)
            (void)buf_put(into, p, n);
        t->answered = true;
        t->reloaded = s->state == FSESSION_BUSY && t->kind == TURN_RELOAD;
        turn_over(s, t);
    }
    s->state = FSESSION_IDLE;
    run_frames_resume(s->run);
    idle_arm(s);
    fsession_next(s);
}

/* The program ends and says why; its exit is awaited. */
static void on_farewell(struct fsession *s, const char *p, size_t n)
{
    s->token[0] = '\0';
    s->farewell = true;
    s->state = FSESSION_STOPPING;
    (void)buf_put(&s->result.error, p, n);
    arm(s, FAREWELL_MS);
}

static void on_frame(void *user, char kind, const char *p, size_t n)
{
    struct fsession *s = user;
    bool loading = s->state == FSESSION_LOADING ||
                   (s->state == FSESSION_BUSY && s->current->kind == TURN_RELOAD);

    if (kind == FRAME_PROGRESS || s->state == FSESSION_STOPPING || s->state == FSESSION_DOWN)
        return;
    if (!s->token[0] || n < FRAME_TOKEN || memcmp(p, s->token, FRAME_TOKEN) != 0) {
        forged(s);
        return;
    }
    p += FRAME_TOKEN;
    n -= FRAME_TOKEN;
    if (kind == FRAME_READY && loading)
        on_answer(s, NULL, NULL, 0);
    else if (kind == FRAME_RESULT && !loading && s->current)
        on_answer(s, &s->current->result, p, n);
    else if (kind == FRAME_ERROR && s->current && s->state == FSESSION_BUSY)
        on_answer(s, &s->current->error, p, n);
    else if (kind == FRAME_FAREWELL)
        on_farewell(s, p, n);
    else if (kind == FRAME_ITEM)
        on_item(s, p, n);
    else if (kind == FRAME_BEGUN && s->current && !s->current->begun)
        on_begun(s);
    else
        forged(s);
}

static void on_interrupted(void *user)
{
    struct fsession *s = user;

    s->signalling = false;
    fsession_next(s);
}

/* ---- its end ---- */

/* What the facts mean for whoever waits. */
static void end_judge(struct fsession *s, struct turn *like)
{
    struct run_result *r = &s->result;

    if (r->reason == END_POLICY) { /* stopped by us because of what it wrote */
        r->reason = END_EXIT;
        r->exit_code = 1;
        r->frames_broken = !r->result_too_long;
        buf_clear(&r->error);
    } else if (r->reason == END_CANCELLED && s->farewell) {
        r->reason = END_EXIT; /* it did not find the way out */
        r->exit_code = 1;
    }
    turn_end_as(like, r);
    if (like->outcome.framed)
        like->error = r->error;
}

static void lost(struct fsession *s)
{
    bool broken = s->forged || s->result.reason == END_POLICY;

    if (!s->loaded)
        return;
    s->lost = true;
    s->lost_reason = broken ? "protocol" : end_reason_name(s->result.reason);
}

static void turn_lost(struct fsession *s, struct turn *t, const struct turn *like)
{
    t->output = (struct run_output){s->result.out, s->result.err, s->result.out_truncated,
                                    s->result.err_truncated};
    s->result.out = s->result.err = BUF_INIT(0);
    t->at.ended = s->result.at.ended;
    turn_take(t, like);
    turn_finish(t, true);
}

static void on_run_done(void *user)
{
    struct fsession *s = user;
    struct turn *t = s->current;
    struct turn like = {.app = s->app, .wall_ms = t ? t->wall_ms : s->wall_ms};
    bool failed = !s->loaded, in_call = t && s->loaded;

    (void)event_del(s->timer);
    s->token[0] = '\0';
    run_free(take_ptr(&s->run));
    if (s->restarting && !s->ending && !s->app->stopping) {
        fsession_start(s);
        return;
    }
    s->state = FSESSION_DOWN;
    s->current = NULL;
    if (t && t->timed_out)
        s->result.reason = END_TIMEOUT; /* it did not survive being interrupted */
    lost(s);
    end_judge(s, &like);
    if (t) {
        s->ending |= t->kind == TURN_CREATE; /* there never was one */
        turn_lost(s, t, &like);
    }
    if (s->ending) {
        fsession_free(s);
        return;
    }
    if (failed)
        queue_fail(s, &like);
    idle_arm(s);
    if (in_call && !s->app->stopping)
        fsession_start(s);
    else
        fsession_next(s);
}

/* ---- taking turns ---- */

static int call_send(struct fsession *s, struct turn *t)
{
    cleanup_with(buf_done) struct buf packet = BUF_INIT(0);

    s->calls++;
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

static void turn_begin(struct fsession *s, struct turn *t)
{
    struct usage u = USAGE_UNKNOWN;

    if (t->kind == TURN_RESTART) {
        s->restarting = true;
        process_stop(s, END_CANCELLED);
        return;
    }
    if (has_cpu_limit(s))
        run_usage(s->run, &u);
    t->cpu_from_us = u.cpu_us > 0 ? (uint64_t)u.cpu_us : 0;
    random_hex(s->token, FRAME_TOKEN / 2);
    s->state = FSESSION_BUSY;
    if ((t->kind == TURN_CALL ? call_send(s, t) : reload_send(s)) < 0) {
        process_stop(s, END_FAILED);
        return;
    }
    t->at.running = clock_us();
    deadline_set(s, t->wall_ms);
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
    t->session = s;
    t->wall_ms = s->wall_ms;
    TAILQ_INSERT_TAIL(&s->queue, t, link);
    s->queued_n++;
    *ret = t;
    return 0;
}

static int call_parse(struct turn *t, struct err *e)
{
    uint64_t most = t->app->config.timeout_max_s * 1000;

    if (call_request_parse_turn(&t->request, t->text.p ? t->text.p : "", t->text.n, e) < 0)
        return -1;
    if (t->request.wall_ms > most)
        return err_set(e, ERR_CALLER, "timeout: at most %llu seconds",
                       (unsigned long long)(most / 1000));
    if (t->request.wall_ms > 0)
        t->wall_ms = t->request.wall_ms;
    return 0;
}

static struct turn *of_work(struct work *w)
{
    return (struct turn *)((char *)w - offsetof(struct turn, work));
}

static void parse_run(struct work *w)
{
    struct turn *t = of_work(w);
    struct err e;

    if (call_parse(t, &e) < 0)
        t->refused = e;
}

/* The turn is a call: is it one that can be made? */
static void call_ready(struct fsession *s, struct turn *t)
{
    turn_bind(t);
    if (t->unbound.kind == ERR_NONE) {
        t->state = TURN_QUEUED;
        return;
    }
    queue_drop(s, t);
    turn_fail(t, t->unbound.kind == ERR_CALLER ? t->unbound_type : "SandboxError", t->unbound.text);
    turn_finish(t, false);
}

static void parse_done(struct work *w)
{
    struct turn *t = of_work(w);
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
    struct turn *t;

    if (queue_add(s, TURN_CALL, o, &t, e) < 0)
        return -1;
    if (t->text.n > PARSE_INLINE) {
        t->work = (struct work){.run = parse_run, .done = parse_done};
        work_submit(s->app->work, &t->work);
        *ret = t;
        return 0;
    }
    if (call_parse(t, e) < 0) {
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
    bool soft = !hard && call_lang((size_t)s->lang)->flags & CALL_RELOADS;

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
        turn_interrupt(s);
    } else if (t->state == TURN_QUEUED) {
        queue_drop(s, t);
        turn_free(t);
        fsession_next(s);
    } else {
        t->stopped = true; /* a worker has it */
    }
}

/* ---- life ---- */

int fsession_init(struct fsession *s, struct app *a)
{
    s->timer = evtimer_new(a->base, on_timer, s);
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

    queue_end(s, s->app->stopping ? END_SHUTDOWN : END_CANCELLED);
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
    call_request_done(&s->request);
    buf_done(&s->text);
    buf_done(&s->dirs);
    buf_done(&s->inspected);
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

    queue_end(s, why);
    if (t && t->state == TURN_PARSING) { /* a worker has it */
        t->stopped = true;
        t->stop_reason = why;
    } else if (t && s->run) {
        process_stop(s, why);
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
        queue_drop(s, t);
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
