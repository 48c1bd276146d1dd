/* SPDX-License-Identifier: MIT */
#include "app/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/app.h"
#include "app/call_compile.h"
#include "app/call_inner.h"
#include "app/call_module.h"
#include "app/kept_calls.h"
#include "base/random.h"
#include "call/dirs.h"
#include "lang/lang_call.h"

enum {
    ID_RANDOM = 16,
    PARSE_INLINE = 1 << 20, /* larger bodies do not block the loop */
    MS_PER_S = 1000,
};

/* ---- life ---- */

void calls_init(struct calls *c)
{
    TAILQ_INIT(&c->active);
}

void call_destroy(struct call *c)
{
    TAILQ_REMOVE(&c->app->calls.active, c, link);
    c->app->calls.n--;
    run_free(c->run);
    call_build_free(c->build);
    lang_call_free(c->plan);
    run_result_done(&c->result);
    collect_done(&c->collect);
    rights_done(&c->rights);
    call_tree_drop(c->tree);
    sync_free(c->sync);
    call_args_done(&c->args);
    call_request_done(&c->request);
    free(c->signature);
    buf_done(&c->synced);
    buf_done(&c->dirs);
    buf_done(&c->inspected);
    buf_done(&c->text);
    buf_done(&c->json);
    free(c);
}

void calls_done(struct calls *c)
{
    for (struct call *next; (next = TAILQ_FIRST(&c->active));) {
        call_inspect_stop(next);
        admission_leave(&next->app->admission, &next->ticket);
        call_destroy(next);
    }
}

/* ---- running ---- */

/* One that is none is nobody's: only the program itself can have sent it. */
static void on_item(void *user, const char *json, size_t n)
{
    struct call *c = user;
    struct json_value v;
    struct err e;

    if (!c->item || !c->done || json_parse(json, n, 0, &v, &e) < 0)
        return;
    if (!c->item(c->user, c->items++, json, n))
        run_frames_pause(c->run);
}

void call_resume(struct call *c)
{
    if (c->state == CALL_RUNNING)
        run_frames_resume(c->run);
}

static void run_plan(struct call *c)
{
    struct run_events events = {
        .item = on_item, .file = call_on_file, .done = call_on_run_done, .user = c};
    struct err e;

    if (run_start(c->where.engine, c->plan, &c->result, &events, &c->run, &e) < 0) {
        call_unstarted(c, END_FAILED, e.text);
        return;
    }
    lang_call_free(take_ptr(&c->plan));
    c->ran = true;
    c->state = CALL_RUNNING;
}

bool call_needs_compiler(const struct call *c)
{
    return c->build && c->build->program.n == 0;
}

static void on_built(void *user);

static int compile(struct call *c, struct err *e)
{
    if (call_dirs_find(c, e) < 0)
        return -1;
    c->build->done = on_built;
    c->build->user = c;
    return call_build_start(c->build, c->dirs.n > 0 ? c->dirs.p : NULL, e);
}

static void start(void *user)
{
    struct call *c = user;
    struct err e;

    if (!call_needs_compiler(c)) {
        run_plan(c);
        return;
    }
    c->state = CALL_COMPILING;
    if (compile(c, &e) < 0)
        call_fail(c, e.kind == ERR_CALLER ? "ValueError" : "SandboxError", e.text);
}

void call_enqueue(struct call *c)
{
    struct err e;

    c->state = CALL_QUEUED;
    if (admission_ask(&c->app->admission, &c->ticket, &e) < 0) {
        c->app->metrics.refused++;
        c->refused = e;
        call_finish(c, false);
    } else if (c->ticket.state == TICKET_GRANTED) {
        start(c);
    }
}

static size_t given_bytes(const struct call *c)
{
    size_t n = 4; /* the brackets of both */

    for (size_t i = 0; i < c->args.n; i++)
        n += (i > 0) + (c->args.at[i].p ? c->args.at[i].n : 4);
    for (size_t i = 0; i < c->args.names_n; i++)
        n += (i > 0) + c->args.names[i].key.n + 1 + c->args.names[i].value.n;
    return n;
}

/* Everything that must be writable lies below /workspace, /tmp or a directory of its own. */
int call_dirs_find(struct call *c, struct err *e)
{
    if (c->dirs.max > 0)
        return 0;
    c->dirs = BUF_INIT(CALL_DIRS_MAX);
    if (call_dirs_add(&c->dirs, c->request.workdir, e) < 0)
        return -1;
    for (size_t i = 0; i < c->request.files_n; i++)
        if (call_dirs_add(&c->dirs, c->request.files[i].path, e) < 0)
            return -1;
    for (size_t i = 0; i < c->tree->mount.n; i++)
        if (call_dirs_add(&c->dirs, c->tree->mount.dir[i].inside, e) < 0)
            return -1;
    return 0;
}

int call_plan(struct call *c, struct err *e)
{
    struct lang_call spec = {
        .id = c->id,
        .lang = (enum call_lang_id)c->lang,
        .request = &c->request,
        .function = c->function,
        .body = c->body,
        .stream = c->item != NULL,
        .options_at = c->options_at,
        .args = &c->args,
        .limits = c->limits,
        .wasm = c->wasm,
    };

    if (call_dirs_find(c, e) < 0 ||
        call_tree_fence(c->tree, &c->request, &c->rights, &c->fenced, e) < 0)
        return -1;
    spec.rights = c->fenced ? &c->rights : NULL;
    if (call_tree_lend(c->tree, &c->request, spec.rights, &spec.lazy, e) < 0)
        return -1;
    if (c->dirs.n > 0)
        spec.dirs = c->dirs.p;
    spec.made = (const char *const *)c->tree->made;
    spec.made_n = c->tree->made_n;
    if (c->build)
        spec.program = (struct bytes){c->build->program.p, c->build->program.n};
    spec.mode = c->mode =
        c->lang == CALL_WASM ? CALL_MODE_INLINE : lang_call_mode(&c->request, given_bytes(c));
    if (lang_call_plan(&spec, &c->plan, e) < 0)
        return -1;
    return call_collect_init(c, e);
}

/* The compiler's own words are the message, and all of them are in stderr. */
static void fail_compile(struct call *c)
{
    const struct run_result *r = &c->build->result;
    char words[sizeof c->outcome.message];

    call_build_failure(c->build, words, sizeof words);
    (void)buf_put(&c->result.err, r->err.p ? r->err.p : "", r->err.n);
    call_fail(c, "CompileError", words);
}

static void on_built(void *user)
{
    struct call *c = user;
    struct err e;

    if (c->stopped)
        call_unstarted(c, c->stop_reason, "");
    else if (call_needs_compiler(c))
        fail_compile(c);
    else if (call_plan(c, &e) < 0)
        call_fail(c, "SandboxError", e.text);
    else
        run_plan(c);
}

/* ---- the beginning ---- */

static int check_language(struct call *c, const char **ret_type, struct err *e)
{
    const struct call_request *r = &c->request;

    *ret_type = "UnsupportedLanguage";
    c->lang = call_lang_find(r->language.p, r->language.n);
    if (c->lang < 0)
        return err_set(e, ERR_CALLER, "Unsupported language: %.64s", r->language.p);
    *ret_type = "EngineNotAvailable";
    c->wasm = r->wasm || c->lang == CALL_WASM;
    if (c->wasm)
        return call_wasm_check(c->app, c->where.jail, (enum call_lang_id)c->lang, e);
    *ret_type = "LanguageNotAvailable";
    if (!lang_call_available((enum call_lang_id)c->lang))
        return err_set(e, ERR_HOST, "%s is not installed on this host",
                       call_lang((size_t)c->lang)->name);
    return 0;
}

static int check_request(struct call *c, const char **ret_type, struct err *e)
{
    const struct config *conf = &c->app->config;
    const struct call_request *r = &c->request;
    uint64_t wall = r->wall_ms ? r->wall_ms : conf->timeout_s * MS_PER_S;

    *ret_type = "ValueError";
    if (place_find(c->app, r->isolation.p ? r->isolation.p : "", &c->where, e) < 0)
        return err_wrap(e, "isolation");
    if (check_language(c, ret_type, e) < 0)
        return -1;
    *ret_type = "ValueError";
    if (r->input.p && c->lang != CALL_WASM)
        return err_set(e, ERR_CALLER, "stdin: only for language wasm");
    if (r->code.n > conf->code_max && c->lang != CALL_WASM)
        return err_set(e, ERR_CALLER, "code: longer than %zu bytes", (size_t)conf->code_max);
    if (memchr(r->code.p, '\0', r->code.n))
        return err_set(e, ERR_CALLER, "code: contains a NUL character");
    if (wall > conf->timeout_max_s * MS_PER_S)
        return err_set(e, ERR_CALLER, "timeout: at most %zu seconds", (size_t)conf->timeout_max_s);
    c->limits = app_limits(c->app, wall);
    run_result_init(&c->result, &c->limits);
    return 0;
}

static int read_schema(struct call *c, struct err *e)
{
    c->signature = calloc(1, sizeof *c->signature);
    if (!c->signature)
        return err_set(e, ERR_HOST, "out of memory");
    if (c->request.schema.p && signature_from_schema(c->signature, c->request.schema, e) < 0)
        return -1;
    c->source = c->signature->source;
    return 0;
}

static void load_run(struct work *w)
{
    struct call *c = call_of_work(w);
    const struct tree_load how = {c->app, &c->where, c->lang, &c->limits};
    struct err e;

    if (call_tree_load(c->tree, &c->request, &how, &e) < 0)
        c->load_error = e;
}

static void load_done(struct work *w)
{
    struct call *c = call_of_work(w);

    if (c->stopped)
        call_unstarted(c, c->stop_reason, "");
    else if (c->load_error.kind != ERR_NONE)
        call_fail(c, c->load_error.kind == ERR_DENIED ? "PermissionDeniedError" : "MountError",
                  c->load_error.text);
    else
        call_bind(c);
}

/* Mounts come from the disk. */
static void load(struct call *c)
{
    struct err e;

    if (!c->request.mount.p && !c->request.permissions.p) {
        call_bind(c);
        return;
    }
    if (mount_parse(&c->tree->mount, c->request.mount, c->request.permissions, &e) < 0) {
        call_fail(c, "ValueError", e.text);
        return;
    }
    c->work = (struct work){.run = load_run, .done = load_done};
    work_submit(c->app->work, &c->work);
}

static void proceed(struct call *c)
{
    uint64_t asked = c->result.at.asked;
    const char *type = "ValueError";
    struct err e;

    if (c->refused.kind != ERR_NONE) {
        call_finish(c, false);
        return;
    }
    if (c->stopped) {
        call_unstarted(c, c->stop_reason, "");
        return;
    }
    if (check_request(c, &type, &e) < 0 || read_schema(c, &e) < 0) {
        call_fail(c, type, e.text);
        return;
    }
    c->result.at.asked = asked;
    c->function = c->request.function;
    load(c);
}

static void parse(struct call *c)
{
    struct err e;

    if (call_request_parse(&c->request, c->text.p ? c->text.p : "", c->text.n, &e) < 0)
        c->refused = e;
}

static void parse_run(struct work *w)
{
    parse(call_of_work(w));
}

static void parse_done(struct work *w)
{
    proceed(call_of_work(w));
}

static struct call *call_new(struct app *a, const struct call_order *o)
{
    struct call *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->tree = call_tree_new();
    if (!c->tree) {
        free(c);
        return NULL;
    }
    c->app = a;
    c->where = (struct place){a->jail, a->engine};
    c->lang = -1;
    c->options_at = -1;
    c->done = o->done;
    c->event = o->event;
    c->item = o->item;
    c->user = o->user;
    c->ticket.grant = start;
    c->ticket.user = c;
    c->text = *o->text;
    *o->text = BUF_INIT(0);
    (void)snprintf(c->id, sizeof c->id, "call_");
    random_base36(c->id + strlen(c->id), ID_RANDOM);
    (void)snprintf(c->request_id, sizeof c->request_id, "%s", o->request_id);
    c->result.at.asked = o->asked_us;
    TAILQ_INSERT_TAIL(&a->calls.active, c, link);
    a->calls.n++;
    return c;
}

int app_call(struct app *a, const struct call_order *o, struct call **ret, struct err *e)
{
    struct call *c;

    if (a->stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    c = call_new(a, o);
    if (!c)
        return err_set(e, ERR_HOST, "no memory for a call");
    *ret = c;
    if (c->text.n <= PARSE_INLINE) {
        parse(c);
        proceed(c);
        return 0;
    }
    c->work = (struct work){.run = parse_run, .done = parse_done};
    work_submit(a->work, &c->work);
    return 0;
}

/* ---- ending early ---- */

static void call_stop(struct call *c, enum end_reason why)
{
    if (c->stopped)
        return;
    c->stopped = true;
    c->stop_reason = why;
    if (c->state == CALL_QUEUED || c->state == CALL_INSPECTING) {
        call_inspect_stop(c);
        admission_leave(&c->app->admission, &c->ticket);
        call_unstarted(c, why, "");
    } else if (c->state == CALL_RUNNING || c->state == CALL_COMPILING) {
        run_stop(c->state == CALL_COMPILING ? c->build->run : c->run, why);
    }
}

void call_abandon(struct call *c)
{
    c->done = NULL;
    call_stop(c, END_CANCELLED);
}

void calls_stop_all(struct calls *c, enum end_reason why)
{
    struct call *one, *next;

    for (one = TAILQ_FIRST(&c->active); one; one = next) {
        next = TAILQ_NEXT(one, link);
        call_stop(one, why);
    }
}
