/* SPDX-License-Identifier: MIT */
/* A new session: from a body to its first process. */
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/build.h"
#include "app/function/inspection.h"
#include "app/session/fsession_inner.h"
#include "function/dispatch.h"
#include "lang/lang_call.h"

enum {
    PARSE_INLINE = 1 << 20, /* larger bodies do not block the loop */
    MS_PER_S = 1000,
    IDLE_MAX_S = 31536000,
};

/* ---- is it one? ---- */

static int check(struct fsession *s, struct err *e)
{
    const struct config *conf = &s->app->config;
    struct program *p = &s->program;
    const struct call_request *r = &p->request;

    p->limits = app_limits(s->app, 0); /* a session may live long; its calls have limits */
    p->limits.cpu_ms = 0;
    if (program_check(p, e) < 0)
        return -1;
    if (!(program_flags(p) & CALL_SESSIONS)) {
        (void)err_set(e, ERR_CALLER, "there are no sessions of %s",
                      call_lang((size_t)p->lang)->name);
        return err_type(e, ERR_NONE, "LanguageNotAvailable");
    }
    s->wall_ms = r->wall_ms ? r->wall_ms : conf->timeout_s * MS_PER_S;
    if (s->wall_ms > conf->timeout_max_s * MS_PER_S)
        return err_set(e, ERR_CALLER, "timeout: at most %zu seconds", (size_t)conf->timeout_max_s);
    return 0;
}

/* ---- going on ---- */

/* There will be no session: its first turn says why. */
static void fail(struct fsession *s, const struct err *e)
{
    struct turn *t = take_ptr(&s->current);

    turn_fail(t, e);
    turn_finish(t, false);
    fsession_free(s);
}

static void start(struct fsession *s)
{
    struct call_request *r = &s->current->request;

    s->current->state = TURN_RUNNING;
    s->current->wall_ms = s->wall_ms;
    r->include_changes = s->program.request.include_changes;
    r->include_contents = s->program.request.include_contents;
    r->include_denied = s->program.request.include_denied;
    fsession_start(s);
}

/* ---- compiling ---- */

static void on_file(void *user, struct run_file *f)
{
    struct fsession *s = user;

    build_on_file(s->program.build, f);
}

static void on_built(void *user)
{
    struct fsession *s = user;
    struct build *b = s->program.build;
    struct err e;

    run_free(take_ptr(&s->compiler));
    if (build_end(b, &e) == 0) {
        start(s);
        return;
    }
    s->current->output.err = b->result.err;
    b->result.err = BUF_INIT(0);
    fail(s, &e);
}

/* One program for all functions that can be called. */
static int program_write(struct fsession *s, struct err *e)
{
    struct program *p = &s->program;
    struct dispatch d = {.cpp = p->lang == CALL_CPP};
    struct json_value inspected;

    if (p->inspected.n == 0) {
        (void)err_set(e, ERR_HOST, "sessions of compiled languages need the inspector");
        return err_type(e, ERR_NONE, "InspectionNotAvailable");
    }
    p->build = build_new(p);
    if (!p->build)
        return err_set(e, ERR_HOST, "out of memory");
    dispatch_code(&d, p->request.code, &p->build->code);
    if (json_parse(p->inspected.p, p->inspected.n, 0, &inspected, e) < 0 ||
        dispatch_session(d.cpp, inspected, &p->build->dispatcher, e) < 0 ||
        build_look_up(p->build, e) < 0)
        return err_type(e, ERR_CALLER, "SignatureError");
    return 0;
}

static int compiler_run(struct fsession *s, struct err *e)
{
    const struct run_events events = {.file = on_file, .done = on_built, .user = s};
    struct build *b = s->program.build;
    struct plan *plan = NULL;
    int r;

    if (build_plan(b, &plan, e) < 0)
        return -1;
    r = run_start(s->program.where.engine, plan, &b->result, &events, &s->compiler, e);
    lang_compile_free(plan);
    return r;
}

static void compile(struct fsession *s)
{
    struct err e;

    if (program_write(s, &e) < 0)
        fail(s, &e);
    else if (s->program.build->made.n > 0)
        start(s);
    else if (compiler_run(s, &e) < 0)
        fail(s, &e);
}

/* ---- inspecting ---- */

/* Without the inspector names cannot be told from options, and nothing else is wrong. */
static void take_answer(struct fsession *s, const struct inspect_answer *answer)
{
    if (answer->status == INSPECT_OK) {
        s->program.inspected = BUF_INIT(answer->json.n + 1);
        (void)buf_put(&s->program.inspected, answer->json.p, answer->json.n);
    }
    if (call_lang((size_t)s->program.lang)->flags & CALL_COMPILED)
        compile(s);
    else
        start(s);
}

static void on_inspected(void *user, const struct inspect_answer *answer)
{
    struct fsession *s = user;

    s->inspect = NULL;
    take_answer(s, answer);
}

static void inspect(struct fsession *s)
{
    struct inspect_order order = {.language = call_lang((size_t)s->program.lang)->inspect,
                                  .code = s->program.request.code,
                                  .done = on_inspected,
                                  .user = s};
    struct inspect_answer known;
    struct err e;

    if (inspect_known(s->app, order.language, order.code, &known))
        take_answer(s, &known);
    else if (inspect_start(s->app, &order, &s->inspect, &e) < 0) {
        (void)err_type(&e, ERR_NONE, "InspectionError");
        fail(s, &e);
    }
}

void fsession_make_stop(struct fsession *s)
{
    if (s->inspect)
        inspect_cancel(take_ptr(&s->inspect));
    run_free(take_ptr(&s->compiler));
}

/* ---- the beginning ---- */

/* Mounts are there. */
static void loaded(struct fsession *s)
{
    if (s->load_error.kind != ERR_NONE)
        fail(s, &s->load_error);
    else if (call_lang((size_t)s->program.lang)->flags & CALL_REFLECTS)
        start(s);
    else
        inspect(s);
}

static void proceed(struct fsession *s)
{
    struct err e;

    if (check(s, &e) < 0 || fsession_mounts_parse(s, &e) < 0 || program_dirs(&s->program, &e) < 0)
        fail(s, &e);
    else if (program_has_files(&s->program))
        fsession_mounts_load(s, loaded);
    else
        loaded(s);
}

static int parse(struct fsession *s, struct err *e)
{
    double idle;

    if (call_request_parse_session(&s->program.request, s->program.text.p ? s->program.text.p : "",
                                   s->program.text.n, e) < 0)
        return -1;
    idle = s->program.request.idle_s;
    s->idle_ms = idle < 0 ? s->app->config.fsession_idle_s * MS_PER_S
                          : (idle > 0 && idle * MS_PER_S < 1 ? 1 : (uint64_t)(idle * MS_PER_S));
    return 0;
}

static void parse_run(struct work *w)
{
    struct turn *t = turn_of_work(w);
    struct err e;

    if (parse(t->session, &e) < 0)
        t->refused = e;
}

static void parse_done(struct work *w)
{
    struct turn *t = turn_of_work(w);
    struct fsession *s = t->session;

    t->state = TURN_QUEUED;
    if (t->refused.kind == ERR_NONE && !t->stopped) {
        proceed(s);
        return;
    }
    s->current = NULL;
    if (t->stopped)
        turn_end_as(t, &(struct run_result){.reason = t->stop_reason});
    turn_finish(t, true);
    fsession_free(s);
}

int fsession_create(struct app *a, const struct turn_order *o, struct turn **ret, struct err *e)
{
    struct fsession *s;
    struct turn *t;

    if (a->stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    if (a->fsessions.n >= a->config.fsessions_max)
        return err_set(e, ERR_BUSY,
                       "there are %zu function sessions already (FUNCTION_SESSIONS_MAX)",
                       a->fsessions.n);
    s = calloc(1, sizeof *s);
    if (!s || fsession_init(s, a) < 0) {
        free(s);
        return err_set(e, ERR_HOST, "no memory for a session");
    }
    t = turn_new(a, TURN_CREATE, o);
    if (!t || program_init(&s->program, a, s->id, &t->text) < 0) {
        if (t)
            turn_free(t);
        fsession_free(s);
        return err_set(e, ERR_HOST, "no memory for a session");
    }
    t->session = s;
    s->current = t;
    *ret = t;
    if (s->program.text.n > PARSE_INLINE) {
        t->work = (struct work){.run = parse_run, .done = parse_done};
        work_submit(a->work, &t->work);
        return 0;
    }
    t->state = TURN_QUEUED;
    if (parse(s, e) < 0) {
        s->current = NULL;
        turn_free(t);
        fsession_free(s);
        return -1;
    }
    proceed(s);
    return 0;
}
