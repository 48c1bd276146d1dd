/* SPDX-License-Identifier: MIT */
#include <event2/event.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/build.h"
#include "app/session/fsession.h"
#include "base/random.h"
#include "lang/lang_call.h"

enum {
    RUNTIME_MS = 60000, /* a WebAssembly runtime that is used for the first time has to start */
    FAREWELL_MS = 2000, /* a program that said it ends has so long to do it */
    US_PER_MS = 1000,
    CPU_CHECK_MS = 100, /* how often a CPU limit is looked at */
};

/* ---- time ---- */

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
    fsession_move(s, FSESSION_STOPPING);
    (void)event_del(s->timer);
    run_stop(s->process.run, why);
}

uint64_t fsession_cpu_us(const struct fsession *s)
{
    struct usage u = USAGE_UNKNOWN;

    if (has_cpu_limit(s))
        run_usage(s->process.run, &u);
    return u.cpu_us > 0 ? (uint64_t)u.cpu_us : 0;
}

static bool cpu_is_spent(const struct fsession *s)
{
    struct usage u = USAGE_UNKNOWN;

    if (!has_cpu_limit(s) || !s->current)
        return false;
    run_usage(s->process.run, &u);
    return u.cpu_us >= 0 &&
           (uint64_t)u.cpu_us > s->current->cpu_from_us + s->app->config.cpu_s * 1000 * US_PER_MS;
}

static bool can_be_interrupted(const struct fsession *s)
{
    /* V8 hands no signal to what it runs */
    return !s->program.wasm && !(call_lang((size_t)s->program.lang)->flags & CALL_COMPILED);
}

/* A signal that comes before the call has begun would be lost; one that comes after its answer
 * might interrupt the next call. So no call begins before the signal is known to have been sent. */
static void signal_send(struct fsession *s)
{
    if (s->current->begun && run_interrupt(s->process.run) == 0)
        s->process.signalling = true;
}

void fsession_interrupt(struct fsession *s)
{
    struct turn *t = s->current;

    if (s->state != FSESSION_BUSY || t->facts.interrupted || !can_be_interrupted(s))
        return;
    t->facts.interrupted = true;
    t->on.order.item = NULL; /* nothing more is handed on */
    run_frames_resume(s->process.run);
    signal_send(s);
}

static void begun(struct fsession *s)
{
    s->current->begun = true;
    if (s->current->facts.interrupted)
        signal_send(s);
}

static void busy_expired(struct fsession *s)
{
    struct turn *t = s->current;

    if (t->facts.interrupted || !can_be_interrupted(s)) {
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
            run_stop(s->process.run, END_CANCELLED);
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

/* ---- its beginning ---- */

static void on_ready(void *user);
static void on_frame(void *user, char kind, const char *p, size_t n);
static void on_interrupted(void *user);
static void on_run_done(void *user);

static int process_open(struct fsession *s, struct err *e)
{
    struct call_args none = {0};
    struct lang_call spec = {
        .id = s->id,
        .lang = (enum call_lang_id)s->program.lang,
        .request = &s->program.request,
        .options_at = -1,
        .stays = true,
        .token = s->process.token,
        .mode = CALL_MODE_INLINE,
        .args = &none,
        .limits = s->program.limits,
        .wasm = s->program.wasm,
        .dirs = program_dirs_text(&s->program),
        .packages = program_packages(&s->program),
        .made = (const char *const *)s->program.tree->made,
        .made_n = s->program.tree->made_n,
        .rights = s->program.fenced ? &s->program.rights : NULL,
    };

    if (call_tree_lend(s->program.tree, &s->program.request, spec.rights, &spec.lazy, e) < 0)
        return -1;
    if (s->program.build)
        spec.program = (struct bytes){s->program.build->made.p, s->program.build->made.n};
    struct run_events events = {.ready = on_ready,
                                .file = fsession_on_file,
                                .frame = on_frame,
                                .interrupted = on_interrupted,
                                .scanned = fsession_on_scanned,
                                .put = fsession_on_put,
                                .done = on_run_done,
                                .user = s};
    struct plan *plan = NULL;
    int r;

    random_hex(s->process.token, FRAME_TOKEN / 2);
    run_result_done(&s->process.result);
    run_result_init(&s->process.result, &s->program.limits);
    if (lang_call_plan(&spec, &plan, e) < 0)
        return -1;
    r = run_start(s->program.where.engine, plan, &s->process.result, &events, &s->process.run, e);
    lang_call_free(plan);
    return r;
}

/* The turns that wait for the code hear why there is no process. */
static void start_failed(struct fsession *s, const struct err *e)
{
    struct turn_ending how = {.error = e, .wall_ms = s->wall_ms};
    struct turn *t = take_ptr(&s->current);

    fsession_move(s, FSESSION_STOPPING); /* no turn is taken meanwhile */
    s->process.token[0] = '\0';
    log_event(&s->app->log, LOG_ERROR, "session_failed", LOG_STR("session_id", s->id),
              LOG_STR("error", e->text));
    fsession_queue_fail(s, &how);
    fsession_move(s, FSESSION_DOWN);
    fsession_rest(s);
    if (!t)
        return;
    how.wall_ms = t->wall_ms;
    s->ending |= t->facts.kind == TURN_CREATE;
    turn_detach(t);
    if (s->ending)
        fsession_free(s);
    turn_end(t, &how);
}

void fsession_loaded(struct fsession *s, const struct err *error)
{
    struct err e;

    if (error) {
        e = *error;
        e.type = "MountError";
        start_failed(s, &e);
        return;
    }
    if (fsession_files_begin(s, &e) < 0 || process_open(s, &e) < 0) {
        (void)err_type(&e, ERR_NONE, "SandboxError");
        start_failed(s, &e);
        return;
    }
    fsession_move(s, FSESSION_LOADING);
    if (s->current) {
        s->current->on.task.result.at.started = s->process.result.at.started;
        s->current->on.task.result.at.running = s->process.result.at.running;
    }
    fsession_deadline(s,
                      s->wall_ms + (s->program.wasm && !s->process.result.warm ? RUNTIME_MS : 0));
}

void fsession_start(struct fsession *s)
{
    struct fsession_process *p = &s->process;

    p->forged = p->farewell = p->signalling = p->loaded = p->restarting = false;
    p->generation++;
    fsession_move(s, FSESSION_LOADING);
    if (p->generation > 1 && s->program.tree->mount.n > 0)
        fsession_mounts_load(s); /* they may have changed since */
    else
        fsession_loaded(s, NULL);
}

/* ---- packets ---- */

static int call_send(struct fsession *s)
{
    cleanup_with(buf_done) struct buf packet = BUF_INIT(0);

    s->calls++;
    s->app->metrics.fsession_calls++;
    if (turn_packet(s->current, s->process.token, &packet) < 0)
        return -1;
    return run_send(s->process.run, packet.p, packet.n);
}

static int reload_send(struct fsession *s)
{
    char frame[FRAME_HEAD + FRAME_TOKEN];

    frame_head(frame, FRAME_RELOAD, FRAME_TOKEN);
    memcpy(frame + FRAME_HEAD, s->process.token, FRAME_TOKEN);
    return run_send(s->process.run, frame, sizeof frame);
}

void fsession_packet(struct fsession *s)
{
    struct turn *t = s->current;

    /* Its time begins before the packet leaves: a wrapper that ends a call whose time is up says so
     * after our deadline then, however late we are. */
    t->on.task.result.at.running = clock_us();
    fsession_deadline(s, t->wall_ms);
    if ((t->facts.kind == TURN_CALL ? call_send(s) : reload_send(s)) < 0)
        fsession_stop(s, END_FAILED);
}

void fsession_send(struct fsession *s)
{
    struct turn *t = s->current;

    t->cpu_from_us = fsession_cpu_us(s);
    random_hex(s->process.token, FRAME_TOKEN / 2);
    fsession_move(s, FSESSION_BUSY);
    if (t->facts.kind == TURN_CALL && t->request.attached.n > 0) {
        fsession_deadline(s, t->wall_ms);
        fsession_files_put(s);
    } else {
        fsession_packet(s);
    }
}

/* ---- what the program says ---- */

static void on_ready(void *user)
{
    struct fsession *s = user;

    if (s->state != FSESSION_LOADING)
        return;
    if (s->current)
        s->current->on.task.result.at.running = s->process.result.at.running;
    fsession_deadline(s, s->wall_ms);
}

static void forged(struct fsession *s)
{
    s->process.forged = true;
    s->process.token[0] = '\0'; /* what is true comes too late now */
    fsession_stop(s, END_POLICY);
}

static void on_item(struct fsession *s, const char *p, size_t n)
{
    struct turn *t = s->current;
    enum function_item got;

    got = t && t->on.result.streamed ? function_item(&t->on, p, n) : ITEM_NONE;
    if (got == ITEM_NONE)
        forged(s);
    else if (got == ITEM_LAST)
        run_frames_pause(s->process.run);
}

void fsession_answered(struct fsession *s)
{
    if (s->current) {
        turn_go_on(s->current);
        return;
    }
    fsession_move(s, FSESSION_IDLE);
    fsession_rest(s);
    fsession_next(s);
}

/* The end of a turn, or of loading without one. What was printed before is in the pipes by now. */
static void on_answer(struct fsession *s, struct buf *into, const char *p, size_t n)
{
    struct turn *t = s->current;
    struct run_output output;

    s->process.token[0] = '\0';
    s->process.loaded = true;
    if (t) {
        struct run_result *r = &t->on.task.result;

        if (into)
            (void)buf_put(into, p, n);
        t->answered = true;
        t->facts.reloaded = s->state == FSESSION_BUSY && t->facts.kind == TURN_RELOAD;
        r->at.ended = clock_us();
        run_output_read(s->process.run);
        run_output_take(s->process.run, &output);
        turn_output(t, &output);
    }
    run_frames_resume(s->process.run);
    if (!fsession_files_look(s))
        fsession_answered(s);
}

/* A wrapper that knows the time may be the first to see that it is up. */
static void on_error(struct fsession *s, const char *p, size_t n)
{
    struct turn *t = s->current;

    if (t->facts.kind == TURN_CALL && clock_us() >= s->deadline_us)
        t->timed_out = t->facts.interrupted = true;
    on_answer(s, &t->on.task.result.error, p, n);
}

/* The program ends and says why; its exit is awaited. */
static void on_farewell(struct fsession *s, const char *p, size_t n)
{
    s->process.token[0] = '\0';
    s->process.farewell = true;
    fsession_move(s, FSESSION_STOPPING);
    (void)buf_put(&s->process.result.error, p, n);
    fsession_deadline(s, FAREWELL_MS);
}

static void on_frame(void *user, char kind, const char *p, size_t n)
{
    struct fsession *s = user;
    bool loading = s->state == FSESSION_LOADING ||
                   (s->state == FSESSION_BUSY && s->current->facts.kind == TURN_RELOAD);

    if (kind == FRAME_PROGRESS || s->state == FSESSION_STOPPING || s->state == FSESSION_DOWN)
        return;
    if (!s->process.token[0] || n < FRAME_TOKEN || memcmp(p, s->process.token, FRAME_TOKEN) != 0) {
        forged(s);
        return;
    }
    p += FRAME_TOKEN;
    n -= FRAME_TOKEN;
    if (kind == FRAME_READY && loading)
        on_answer(s, NULL, NULL, 0);
    else if (kind == FRAME_RESULT && !loading && s->current)
        on_answer(s, &s->current->on.task.result.result, p, n);
    else if (kind == FRAME_ERROR && s->current && s->state == FSESSION_BUSY)
        on_error(s, p, n);
    else if (kind == FRAME_FAREWELL)
        on_farewell(s, p, n);
    else if (kind == FRAME_ITEM)
        on_item(s, p, n);
    else if (kind == FRAME_BEGUN && s->current && !s->current->begun)
        begun(s);
    else
        forged(s);
}

static void on_interrupted(void *user)
{
    struct fsession *s = user;

    s->process.signalling = false;
    fsession_next(s);
}

/* ---- its end ---- */

/* What the facts mean for the turns. */
static void end_judge(struct fsession *s)
{
    struct run_result *r = &s->process.result;

    if (r->reason == END_POLICY) { /* stopped by us because of what it wrote */
        r->reason = END_EXIT;
        r->exit_code = 1;
        r->frames_broken = !r->result_too_long;
        buf_clear(&r->error);
    } else if (r->reason == END_CANCELLED && s->process.farewell) {
        r->reason = END_EXIT; /* it did not find the way out */
        r->exit_code = 1;
    }
}

static void lost(struct fsession *s)
{
    bool broken = s->process.forged || s->process.result.reason == END_POLICY;

    if (!s->process.loaded)
        return;
    s->process.lost = true;
    s->app->metrics.fsession_restarts++;
    s->process.lost_reason = broken ? "protocol" : end_reason_name(s->process.result.reason);
}

/* It had answered before its process ended; only what it did to the files may not be known. */
static void turn_kept(struct fsession *s, struct turn *t)
{
    s->current = NULL;
    turn_detach(t);
    s->process.lost = false;
    s->process.lost_reason = NULL;
    turn_go_on(t);
}

static void turn_lost(struct fsession *s, struct turn *t, const struct turn_ending *how)
{
    struct run_result *r = &s->process.result;
    struct run_output output = {r->out, r->err, r->out_truncated, r->err_truncated};

    r->out = r->err = BUF_INIT(0);
    turn_output(t, &output);
    t->on.task.result.at.ended = r->at.ended;
    turn_detach(t);
    turn_end(t, how);
}

void fsession_gone(struct fsession *s)
{
    struct turn *t = s->current;
    struct turn_ending how = {.run = &s->process.result, .wall_ms = t ? t->wall_ms : s->wall_ms};
    bool failed = !s->process.loaded, in_call;

    fsession_move(s, FSESSION_STOPPING); /* no turn is taken meanwhile */
    collect_done(&s->files.collect);
    if (t && t->answered)
        turn_kept(s, t);
    t = take_ptr(&s->current);
    in_call = t && s->process.loaded;
    if (t && t->timed_out)
        s->process.result.reason = END_TIMEOUT; /* it did not survive being interrupted */
    lost(s);
    end_judge(s);
    s->ending |= t && t->facts.kind == TURN_CREATE; /* there never was one */
    if (t)
        turn_lost(s, t, &how);
    if (s->ending) {
        fsession_free(s);
        return;
    }
    if (failed)
        fsession_queue_fail(s, &how);
    fsession_move(s, FSESSION_DOWN);
    fsession_rest(s);
    if (in_call && !s->app->life.stopping)
        fsession_start(s);
    else
        fsession_next(s);
}

static void on_run_done(void *user)
{
    struct fsession *s = user;

    (void)event_del(s->timer);
    s->process.token[0] = '\0';
    s->files.looking = false;
    run_free(take_ptr(&s->process.run));
    if (s->process.restarting && !s->ending && !s->app->life.stopping)
        fsession_start(s);
    else if (fsession_is_beside(s))
        fsession_move(s, FSESSION_STOPPING); /* what is there comes back and goes on */
    else
        fsession_gone(s);
}
