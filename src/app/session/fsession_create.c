/* SPDX-License-Identifier: MIT */
/* A new session: a turn of its own, from a body to the first process that has the code. */
#include <event2/event.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/build.h"
#include "base/random.h"
#include "core/languages.h"
#include "function/dispatch.h"

enum {
    PARSE_INLINE = 1 << 20, /* larger bodies do not block the loop */
    MS_PER_S = 1000,
};

static task_begin_fn create_parse, create_check, create_inspect, create_compile;

/* clang-format off */
static const struct task_step steps[] = {
    {"parse",    TASK_PREPARING,  create_parse},
    {"check",    TASK_PREPARING,  create_check},
    {"packages", TASK_PREPARING,  function_packages, .stop = packages_give_up},
    {"admit",    TASK_QUEUED,     task_admit},
    {"mounts",   TASK_STARTING,   function_load},
    {"inspect",  TASK_STARTING,   create_inspect, .stop = inspect_give_up},
    {"compile",  TASK_STARTING,   create_compile},
    {"compiled", TASK_STARTING,   function_compiled},
    {"load",     TASK_STARTING,   turn_perform},
    {"leave",    TASK_COLLECTING, turn_leave,      .always = true},
    {"judge",    TASK_COLLECTING, turn_outcome,    .always = true},
    {"render",   TASK_COLLECTING, function_render, .always = true},
};
/* clang-format on */
static const struct task_kind kind = {"creation", steps, ARRAY_LEN(steps), turn_answer,
                                      turn_account};

/* ---- parse ---- */

static void parse(struct task *k)
{
    struct program *p = function_of(k)->program;
    struct err e;

    if (call_request_parse_session(&p->request, p->text.p ? p->text.p : "", p->text.n, &e) < 0)
        k->refused = e;
}

static enum task_go create_parse(struct task *k, struct err *e)
{
    struct function_task *f = function_of(k);

    (void)e;
    return function_do(f, parse, f->program->text.n > PARSE_INLINE);
}

/* ---- check ---- */

static uint64_t idle_ms(const struct fsession *s)
{
    double idle = s->program.request.idle_s;

    if (idle < 0)
        return s->app->config.fsession_idle_s * MS_PER_S;
    return idle > 0 && idle * MS_PER_S < 1 ? 1 : (uint64_t)(idle * MS_PER_S);
}

static int check(struct fsession *s, struct err *e)
{
    const struct config *conf = &s->app->config;
    struct program *p = &s->program;
    const struct call_request *r = &p->request;

    p->limits = app_limits(s->app, 0); /* a session may live long; its calls have limits */
    p->limits.cpu_ms = 0;
    s->idle_ms = idle_ms(s);
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
    return fsession_mounts_parse(s, e) < 0 ? -1 : program_dirs(p, e);
}

static enum task_go create_check(struct task *k, struct err *e)
{
    struct turn *t = turn_of(k);
    struct fsession *s = t->session;
    struct err why;

    (void)e;
    if (check(s, &why) < 0)
        return function_fail(&t->on, &why);
    k->engine = s->program.where.engine;
    t->wall_ms = s->wall_ms;
    t->request.reporting = s->program.request.reporting;
    return TASK_NEXT;
}

/* ---- inspect, compile ---- */

static enum task_go create_inspect(struct task *k, struct err *e)
{
    struct function_task *f = function_of(k);

    return program_flags(f->program) & CALL_REFLECTS ? TASK_NEXT : function_inspect(f, e);
}

/* One program for all functions that can be called. */
static int program_write(struct program *p, struct err *e)
{
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

/* Without the inspector names cannot be told from options, and nothing else is wrong. */
static enum task_go create_compile(struct task *k, struct err *e)
{
    struct function_task *f = function_of(k);
    struct err why;

    (void)e;
    if (!(program_flags(f->program) & CALL_COMPILED))
        return TASK_NEXT;
    if (program_write(f->program, &why) < 0)
        return function_fail(f, &why);
    return function_compile(f);
}

/* ---- the beginning ---- */

static struct fsession *fsession_new(struct app *a, struct buf *text)
{
    struct fsession *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->timer = evtimer_new(a->base, fsession_on_timer, s);
    if (!s->timer || program_init(&s->program, a, s->id, text) < 0) {
        if (s->timer)
            event_free(s->timer);
        free(s);
        return NULL;
    }
    s->app = a;
    TAILQ_INIT(&s->queue);
    (void)memcpy(s->id, "sess_", 5);
    random_base36(s->id + 5, FSESSION_ID_RANDOM);
    (void)clock_iso(s->created_at);
    TAILQ_INSERT_TAIL(&a->functions.sessions.list, s, link);
    a->functions.sessions.n++;
    return s;
}

static int create(struct app *a, const struct function_order *o, struct turn **ret, struct err *e)
{
    struct function_order order = *o;
    struct fsession *s;
    struct turn *t;

    if (a->life.stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    if (a->functions.sessions.n >= a->config.fsessions_max)
        return err_set(e, ERR_BUSY,
                       "there are %zu function sessions already (FUNCTION_SESSIONS_MAX)",
                       a->functions.sessions.n);
    s = fsession_new(a, o->text);
    if (!s)
        return err_set(e, ERR_HOST, "no memory for a session");
    order.text = NULL;
    t = turn_new(a, TURN_CREATE, &kind, &s->program, &order);
    if (!t) {
        fsession_free(s);
        return err_set(e, ERR_HOST, "no memory for a session");
    }
    t->session = s;
    s->current = t;
    *ret = t;
    if (task_begin(&t->on.task, e) == 0)
        return 0;
    s->current = NULL;
    turn_free(t);
    fsession_free(s);
    return -1;
}

int fsession_create(struct app *a, const struct function_order *o, struct turn **ret, struct err *e)
{
    int r = create(a, o, ret, e);

    buf_done(o->text); /* taken by the session, if there is one */
    return r;
}
