/* SPDX-License-Identifier: MIT */
/* A new session: from a body to its first process. */
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/call_compile.h"
#include "app/function/call_module.h"
#include "app/function/inspection.h"
#include "app/session/fsession_inner.h"
#include "function/dirs.h"
#include "function/dispatch.h"
#include "lang/lang_call.h"

enum {
    PARSE_INLINE = 1 << 20, /* larger bodies do not block the loop */
    MS_PER_S = 1000,
    IDLE_MAX_S = 31536000,
};

/* ---- is it one? ---- */

static int check_language(struct fsession *s, const char **ret_type, struct err *e)
{
    const struct call_request *r = &s->request;
    const struct call_lang *lang;

    *ret_type = "UnsupportedLanguage";
    s->lang = call_lang_find(r->language.p, r->language.n);
    if (s->lang < 0)
        return err_set(e, ERR_CALLER, "Unsupported language: %.64s", r->language.p);
    lang = call_lang((size_t)s->lang);
    *ret_type = "EngineNotAvailable";
    s->wasm = r->wasm;
    if (s->wasm && call_wasm_check(s->app, s->where.jail, (enum call_lang_id)s->lang, e) < 0)
        return -1;
    *ret_type = "LanguageNotAvailable";
    if (!(lang->flags & CALL_SESSIONS))
        return err_set(e, ERR_CALLER, "there are no sessions of %s", lang->name);
    if (s->wasm)
        return 0;
    if (!lang_call_available((enum call_lang_id)s->lang))
        return err_set(e, ERR_HOST, "%s is not installed on this host", lang->name);
    return 0;
}

static int check_request(struct fsession *s, const char **ret_type, struct err *e)
{
    const struct config *conf = &s->app->config;
    const struct call_request *r = &s->request;

    if (place_find(s->app, r->isolation.p ? r->isolation.p : "", &s->where, e) < 0)
        return err_wrap(e, "isolation");
    if (check_language(s, ret_type, e) < 0)
        return -1;
    *ret_type = "ValueError";
    if (r->code.n > conf->code_max)
        return err_set(e, ERR_CALLER, "code: longer than %zu bytes", (size_t)conf->code_max);
    if (memchr(r->code.p, '\0', r->code.n))
        return err_set(e, ERR_CALLER, "code: contains a NUL character");
    s->wall_ms = r->wall_ms ? r->wall_ms : conf->timeout_s * MS_PER_S;
    if (s->wall_ms > conf->timeout_max_s * MS_PER_S)
        return err_set(e, ERR_CALLER, "timeout: at most %zu seconds", (size_t)conf->timeout_max_s);
    s->limits = app_limits(s->app, 0); /* a session may live long; its calls have limits */
    s->limits.cpu_ms = 0;
    return 0;
}

/* ---- going on ---- */

/* There will be no session: its first turn says why. */
static void fail(struct fsession *s, const char *type, const char *words)
{
    struct turn *t = take_ptr(&s->current);

    turn_fail(t, type, words);
    turn_finish(t, false);
    fsession_free(s);
}

static void start(struct fsession *s)
{
    struct call_request *r = &s->current->request;

    s->current->state = TURN_RUNNING;
    s->current->wall_ms = s->wall_ms;
    r->include_changes = s->request.include_changes;
    r->include_contents = s->request.include_contents;
    r->include_denied = s->request.include_denied;
    fsession_start(s);
}

/* ---- compiling ---- */

static void on_built(void *user)
{
    struct fsession *s = user;
    struct call_build *b = s->build;
    char words[sizeof s->current->outcome.message];

    if (b->program.n > 0) {
        start(s);
        return;
    }
    call_build_failure(b, words, sizeof words);
    s->current->output.err = b->result.err;
    b->result.err = BUF_INIT(0);
    fail(s, "CompileError", words);
}

/* One program for all functions that can be called. */
static int program_write(struct fsession *s, struct err *e)
{
    struct dispatch d = {.cpp = s->lang == CALL_CPP};
    struct json_value inspected;

    s->build = call_build_new(s->app, s->id, s->lang, &s->request);
    if (!s->build)
        return err_set(e, ERR_HOST, "out of memory");
    s->build->wasm = s->wasm;
    s->build->engine = s->where.engine;
    s->build->done = on_built;
    s->build->user = s;
    dispatch_code(&d, s->request.code, &s->build->code);
    if (json_parse(s->inspected.p, s->inspected.n, 0, &inspected, e) < 0 ||
        dispatch_session(d.cpp, inspected, &s->build->dispatcher, e) < 0)
        return -1;
    return call_build_seal(s->build, e);
}

static void compile(struct fsession *s)
{
    struct err e;

    if (s->inspected.n == 0)
        fail(s, "InspectionNotAvailable", "sessions of compiled languages need the inspector");
    else if (program_write(s, &e) < 0)
        fail(s, e.kind == ERR_CALLER ? "SignatureError" : "SandboxError", e.text);
    else if (s->build->program.n > 0)
        start(s);
    else if (call_build_start(s->build, s->dirs.n > 0 ? s->dirs.p : NULL, &e) < 0)
        fail(s, e.kind == ERR_CALLER ? "ValueError" : "SandboxError", e.text);
}

/* ---- inspecting ---- */

/* Without the inspector names cannot be told from options, and nothing else is wrong. */
static void take_answer(struct fsession *s, const struct inspect_answer *answer)
{
    if (answer->status == INSPECT_OK) {
        s->inspected = BUF_INIT(answer->json.n + 1);
        (void)buf_put(&s->inspected, answer->json.p, answer->json.n);
    }
    if (call_lang((size_t)s->lang)->flags & CALL_COMPILED)
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
    struct inspect_order order = {.language = call_lang((size_t)s->lang)->inspect,
                                  .code = s->request.code,
                                  .done = on_inspected,
                                  .user = s};
    struct inspect_answer known;
    struct err e;

    if (inspect_known(s->app, order.language, order.code, &known))
        take_answer(s, &known);
    else if (inspect_start(s->app, &order, &s->inspect, &e) < 0)
        fail(s, "InspectionError", e.text);
}

void fsession_make_stop(struct fsession *s)
{
    if (s->inspect)
        inspect_cancel(take_ptr(&s->inspect));
    call_build_free(take_ptr(&s->build));
}

/* ---- the beginning ---- */

/* Mounts are there. */
static void loaded(struct fsession *s)
{
    if (s->load_error.kind != ERR_NONE)
        fail(s, s->load_error.kind == ERR_DENIED ? "PermissionDeniedError" : "MountError",
             s->load_error.text);
    else if (call_lang((size_t)s->lang)->flags & CALL_REFLECTS)
        start(s);
    else
        inspect(s);
}

static void proceed(struct fsession *s)
{
    const char *type = "ValueError";
    struct err e;

    if (check_request(s, &type, &e) < 0 || fsession_mounts_parse(s, &e) < 0 ||
        call_dirs_find(&s->dirs, &s->request, &s->tree->mount, &e) < 0)
        fail(s, type, e.text);
    else if (s->request.mount.p || s->request.permissions.p)
        fsession_mounts_load(s, loaded);
    else
        loaded(s);
}

static int parse(struct fsession *s, struct err *e)
{
    double idle;

    if (call_request_parse_session(&s->request, s->text.p ? s->text.p : "", s->text.n, e) < 0)
        return -1;
    idle = s->request.idle_s;
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
    if (!t) {
        fsession_free(s);
        return err_set(e, ERR_HOST, "no memory for a session");
    }
    s->lang = -1;
    s->text = t->text;
    t->text = BUF_INIT(0);
    t->session = s;
    s->current = t;
    *ret = t;
    if (s->text.n > PARSE_INLINE) {
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
