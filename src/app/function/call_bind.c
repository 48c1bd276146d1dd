/* SPDX-License-Identifier: MIT */
/*
 * From what was asked for to what a function is given: which function, with the inspector's help
 * where the name or the declaration is not known, and which argument goes where.
 */
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/call_compile.h"
#include "app/function/call_inner.h"
#include "app/function/call_module.h"
#include "app/function/inspection.h"
#include "function/dispatch.h"

/* ---- binding ---- */

static unsigned flags_of(const struct call *c)
{
    return call_lang((size_t)c->lang)->flags;
}

static int bind_args(struct call *c, struct err *e)
{
    struct call_signature *s = c->signature;

    if (call_args_collect(&c->args, c->request.args, c->request.kwargs, e) < 0 ||
        call_args_bind(&c->args, s, flags_of(c), e) < 0)
        return -1;
    if (s->strict && s->source == SIGNATURE_SCHEMA && call_args_check(&c->args, s, e) < 0)
        return -1;
    if (c->lang == CALL_JAVASCRIPT)
        c->options_at = call_args_options_at(&c->args, s);
    return call_args_representable(&c->args, call_lang((size_t)c->lang), e);
}

/* C and C++ are bound twice: by the schema, if there is one, then by the declaration. */
static int bind_declared(struct call *c, struct err *e)
{
    struct json_value function = c->found;

    if (c->body) {
        c->signature->n = 0;
        c->signature->result = dispatch_body_result(c->request.schema);
        return dispatch_bind(&c->args, c->signature, e);
    }
    if (signature_from_function(c->signature, function, e) < 0 ||
        call_args_bind(&c->args, c->signature, flags_of(c), e) < 0)
        return -1;
    if (c->source == SIGNATURE_CONVENTION)
        c->source = SIGNATURE_INFERRED;
    return dispatch_bind(&c->args, c->signature, e);
}

static void bind_all(struct call *c)
{
    bool compiled = flags_of(c) & CALL_COMPILED;
    struct err e;

    if (bind_args(c, &e) < 0 || (compiled && bind_declared(c, &e) < 0)) {
        call_fail(c, e.kind == ERR_CALLER ? "TypeError" : "SandboxError", e.text);
        return;
    }
    if (flags_of(c) & CALL_MODULE && call_module_prepare(c, &e) < 0) {
        call_fail(c, e.kind == ERR_CALLER ? "ValueError" : "SandboxError", e.text);
        return;
    }
    if (compiled && call_build_prepare(c, &e) < 0) {
        call_fail(c, e.kind == ERR_CALLER ? "SignatureError" : "SandboxError", e.text);
        return;
    }
    if (!call_needs_compiler(c) && call_plan(c, &e) < 0)
        call_fail(c, e.kind == ERR_CALLER ? "ValueError" : "SandboxError", e.text);
    else
        call_enqueue(c);
}

/* ---- inspecting ---- */

/* Is anything asked that only the text can tell? Wrappers of languages that know their own
 * functions bind by themselves. */
static bool needs_inspector(const struct call *c)
{
    if (flags_of(c) & CALL_MODULE || (!c->request.function.p && flags_of(c) & CALL_DETECTS))
        return false;
    if (!c->request.function.p || flags_of(c) & CALL_COMPILED)
        return true;
    return !(flags_of(c) & CALL_REFLECTS) && c->source != SIGNATURE_SCHEMA &&
           (c->request.kwargs.p || (c->request.args.p && c->request.args.type == JSON_OBJECT));
}

static const char body_name[] = "__anonymous_wrapper__";

/* Which function is meant; false: the call has failed. */
static bool take_found(struct call *c, const struct call_found *found)
{
    struct json_value refused;

    if (found->several) {
        call_fail(c, "DetectionError", found->words);
        return false;
    }
    c->found = found->function;
    if (c->function.p) {
        if (!c->found.p && flags_of(c) & CALL_COMPILED) {
            char words[CALL_NAME_MAX + 64];

            (void)snprintf(words, sizeof words, "Function '%s' not found", c->function.p);
            call_fail(c, "NameError", words);
            return false;
        }
    } else if (found->name.p) {
        cleanup_with(buf_done) struct buf name = BUF_INIT(sizeof c->name);

        if (json_decode_string(found->name, JSON_LENIENT_UTF8, &name) < 0) {
            call_fail(c, "InspectionError", "the function's name is too long");
            return false;
        }
        (void)snprintf(c->name, sizeof c->name, "%s", name.p ? name.p : "");
        c->function = (struct bytes){c->name, strlen(c->name)};
    } else {
        c->body = true;
        c->function = (struct bytes){body_name, sizeof body_name - 1};
    }
    if (c->found.p && flags_of(c) & CALL_COMPILED && json_get(c->found, "refused", &refused) &&
        refused.type == JSON_STRING) {
        char words[sizeof c->outcome.message];

        (void)snprintf(words, sizeof words, "%.*s", refused.n < 500 ? (int)refused.n - 2 : 500,
                       refused.p + 1);
        call_fail(c, "SignatureError", words);
        return false;
    }
    return true;
}

/* The answer is copied: what points into it lives as long as the call. */
static int read_answer(struct call *c, struct bytes json, struct call_found *ret, struct err *e)
{
    struct json_value v;

    c->inspected = BUF_INIT(json.n + 1);
    if (buf_put(&c->inspected, json.p, json.n) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    if (json_parse(c->inspected.p, c->inspected.n, 0, &v, e) < 0)
        return -1;
    return signature_find(v, c->function.p, c->function.n, ret, e);
}

static void take_answer(struct call *c, const struct inspect_answer *answer)
{
    struct call_found found;
    struct err e;

    if (answer->status != INSPECT_OK) {
        call_fail(
            c, answer->status == INSPECT_UNAVAILABLE ? "InspectionNotAvailable" : "InspectionError",
            answer->message);
        return;
    }
    if (read_answer(c, answer->json, &found, &e) < 0) {
        call_fail(c, "InspectionError", e.text);
        return;
    }
    if (!take_found(c, &found))
        return;
    if (c->source != SIGNATURE_SCHEMA && c->found.p && !(flags_of(c) & CALL_COMPILED)) {
        if (signature_from_function(c->signature, c->found, &e) < 0) {
            call_fail(c, "InspectionError", e.text);
            return;
        }
        c->source = SIGNATURE_INFERRED;
    }
    bind_all(c);
}

static void on_inspected(void *user, const struct inspect_answer *answer)
{
    struct call *c = user;

    c->inspect = NULL;
    take_answer(c, answer);
}

static void inspect(struct call *c)
{
    struct inspect_order order = {.language = call_lang((size_t)c->lang)->inspect,
                                  .code = c->request.code,
                                  .done = on_inspected,
                                  .user = c};
    struct inspect_answer known;
    struct err e;

    if (inspect_known(c->app, order.language, order.code, &known)) {
        take_answer(c, &known);
        return;
    }
    c->state = CALL_INSPECTING;
    if (inspect_start(c->app, &order, &c->inspect, &e) == 0)
        return;
    if (e.kind == ERR_BUSY) {
        c->refused = e;
        call_finish(c, false);
    } else {
        call_fail(c, "InspectionError", e.text);
    }
}

void call_inspect_stop(struct call *c)
{
    if (c->inspect)
        inspect_cancel(take_ptr(&c->inspect));
}

void call_bind(struct call *c)
{
    if (needs_inspector(c)) {
        inspect(c);
        return;
    }
    if (c->source == SIGNATURE_CONVENTION)
        c->source = SIGNATURE_INFERRED; /* by the wrapper, from the function itself */
    bind_all(c);
}
