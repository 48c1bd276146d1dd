/* SPDX-License-Identifier: MIT */
/* The beginning of a call: what was asked for, whether it can be, and the files of its mounts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/call_inner.h"
#include "app/function/call_module.h"
#include "base/random.h"
#include "lang/lang_call.h"

enum {
    ID_RANDOM = 16,
    PARSE_INLINE = 1 << 20, /* larger bodies do not block the loop */
    MS_PER_S = 1000,
};

/* ---- checking ---- */

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

/* ---- mounts ---- */

static void load_run(struct work *w)
{
    struct call *c = call_of_work(w);
    const struct tree_load how = {c->app, &c->where, c->lang, &c->limits};
    struct err e;

    if (call_tree_load(c->tree, &c->request, &how, &e) < 0 ||
        call_tree_fence(c->tree, &c->request, &c->rights, &c->fenced, &e) < 0)
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

/* ---- parsing ---- */

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
    c->ticket.grant = call_start;
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
