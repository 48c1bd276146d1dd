/* SPDX-License-Identifier: MIT */
#include "app/function/call.h"

#include <stdlib.h>

#include "app/daemon/app.h"
#include "app/function/call_compile.h"
#include "app/function/call_inner.h"
#include "function/dirs.h"
#include "lang/lang_call.h"

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

/* Once. */
static int dirs_find(struct call *c, struct err *e)
{
    return c->dirs.max > 0 ? 0 : call_dirs_find(&c->dirs, &c->request, &c->tree->mount, e);
}

static void on_built(void *user);

static int compile(struct call *c, struct err *e)
{
    if (dirs_find(c, e) < 0)
        return -1;
    c->build->done = on_built;
    c->build->user = c;
    return call_build_start(c->build, c->dirs.n > 0 ? c->dirs.p : NULL, e);
}

void call_start(void *user)
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
        call_start(c);
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

    if (dirs_find(c, e) < 0)
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
