/* SPDX-License-Identifier: MIT */
/* The process of a session: how it begins, what it says, how it ends. */
#include <event2/event.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/build.h"
#include "app/session/fsession_inner.h"
#include "base/random.h"
#include "lang/lang_call.h"

enum {
    RUNTIME_MS = 60000, /* a WebAssembly runtime that is used for the first time has to start */
    FAREWELL_MS = 2000, /* a program that said it ends has so long to do it */
};

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
        .token = s->token,
        .mode = CALL_MODE_INLINE,
        .args = &none,
        .limits = s->program.limits,
        .wasm = s->program.wasm,
        .dirs = program_dirs_text(&s->program),
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

    random_hex(s->token, FRAME_TOKEN / 2);
    run_result_done(&s->result);
    run_result_init(&s->result, &s->program.limits);
    if (lang_call_plan(&spec, &plan, e) < 0)
        return -1;
    r = run_start(s->program.where.engine, plan, &s->result, &events, &s->run, e);
    lang_call_free(plan);
    return r;
}

static void start_failed(struct fsession *s, const struct err *e)
{
    struct turn like = {.app = s->app}, *t = take_ptr(&s->current);

    s->state = FSESSION_DOWN;
    s->token[0] = '\0';
    log_event(&s->app->log, LOG_ERROR, "session_failed", LOG_STR("session_id", s->id),
              LOG_STR("error", e->text));
    turn_fail(&like, e);
    fsession_queue_fail(s, &like);
    fsession_rest(s);
    if (!t)
        return;
    s->ending |= t->kind == TURN_CREATE;
    turn_take(t, &like);
    turn_finish(t, false);
    if (s->ending)
        fsession_free(s);
}

/* The mounts, if there are any, are loaded. */
static void process_start(struct fsession *s)
{
    struct err e;

    if (s->load_error.kind != ERR_NONE) {
        s->load_error.type = "MountError";
        start_failed(s, &s->load_error);
        return;
    }
    if (fsession_files_begin(s, &e) < 0 || process_open(s, &e) < 0) {
        (void)err_type(&e, ERR_NONE, "SandboxError");
        start_failed(s, &e);
        return;
    }
    s->state = FSESSION_LOADING;
    if (s->current) {
        s->current->at.started = s->result.at.started;
        s->current->at.running = s->result.at.running;
    }
    fsession_deadline(s, s->wall_ms + (s->program.wasm && !s->result.warm ? RUNTIME_MS : 0));
}

void fsession_start(struct fsession *s)
{
    s->forged = s->farewell = s->signalling = s->loaded = s->restarting = false;
    s->generation++;
    s->state = FSESSION_LOADING;
    if (s->generation > 1 && fsession_has_mounts(s))
        fsession_mounts_load(s, process_start); /* they may have changed since */
    else
        process_start(s);
}

/* ---- what the program says ---- */

static void on_ready(void *user)
{
    struct fsession *s = user;

    if (s->state != FSESSION_LOADING)
        return;
    if (s->current)
        s->current->at.running = s->result.at.running;
    fsession_deadline(s, s->wall_ms);
}

static void forged(struct fsession *s)
{
    s->forged = true;
    s->token[0] = '\0'; /* what is true comes too late now */
    fsession_stop(s, END_POLICY);
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

void fsession_answered(struct fsession *s)
{
    struct turn *t = take_ptr(&s->current);

    if (t) {
        turn_finish(t, true);
        s->lost = false;
        s->lost_reason = NULL;
    }
    s->state = FSESSION_IDLE;
    fsession_rest(s);
    fsession_next(s);
}

/* The end of a turn, or of loading without one. What was printed before is in the pipes by now. */
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
        t->at.ended = clock_us();
        run_output_read(s->run);
        run_output_take(s->run, &t->output);
    }
    run_frames_resume(s->run);
    if (!fsession_files_look(s))
        fsession_answered(s);
}

/* A wrapper that knows the time may be the first to see that it is up. */
static void on_error(struct fsession *s, const char *p, size_t n)
{
    struct turn *t = s->current;

    if (t->kind == TURN_CALL && clock_us() >= s->deadline_us)
        t->timed_out = t->interrupted = true;
    on_answer(s, &t->error, p, n);
}

/* The program ends and says why; its exit is awaited. */
static void on_farewell(struct fsession *s, const char *p, size_t n)
{
    s->token[0] = '\0';
    s->farewell = true;
    s->state = FSESSION_STOPPING;
    (void)buf_put(&s->result.error, p, n);
    fsession_deadline(s, FAREWELL_MS);
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
        on_error(s, p, n);
    else if (kind == FRAME_FAREWELL)
        on_farewell(s, p, n);
    else if (kind == FRAME_ITEM)
        on_item(s, p, n);
    else if (kind == FRAME_BEGUN && s->current && !s->current->begun)
        fsession_begun(s);
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
    s->app->metrics.fsession_restarts++;
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

/* It had answered before its process ended; only what it did to the files may not be known. */
static void turn_kept(struct fsession *s)
{
    turn_finish(take_ptr(&s->current), true);
    s->lost = false;
    s->lost_reason = NULL;
}

void fsession_gone(struct fsession *s)
{
    struct turn *t = s->current;
    struct turn like = {.app = s->app, .wall_ms = t ? t->wall_ms : s->wall_ms};
    bool failed = !s->loaded, in_call;

    s->state = FSESSION_DOWN;
    collect_done(&s->collect);
    if (t && t->answered)
        turn_kept(s);
    t = take_ptr(&s->current);
    in_call = t && s->loaded;
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
        fsession_queue_fail(s, &like);
    fsession_rest(s);
    if (in_call && !s->app->stopping)
        fsession_start(s);
    else
        fsession_next(s);
}

static void on_run_done(void *user)
{
    struct fsession *s = user;

    (void)event_del(s->timer);
    s->token[0] = '\0';
    s->looking = false;
    run_free(take_ptr(&s->run));
    if (s->restarting && !s->ending && !s->app->stopping)
        fsession_start(s);
    else if (fsession_is_beside(s))
        s->state = FSESSION_STOPPING; /* what is there comes back and goes on */
    else
        fsession_gone(s);
}
