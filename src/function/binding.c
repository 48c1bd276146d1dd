/* SPDX-License-Identifier: MIT */
#include "function/binding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/languages.h"
#include "function/dispatch.h"

enum { REFUSED_SHOWN = 490 }; /* bytes of why a function cannot be called */

int binding_begin(struct binding *b, const struct call_request *r, struct err *e)
{
    *b = (struct binding){.options_at = -1};
    b->signature = calloc(1, sizeof *b->signature);
    if (!b->signature)
        return err_set(e, ERR_HOST, "out of memory");
    if (r->schema.p && signature_from_schema(b->signature, r->schema, e) < 0)
        return -1;
    b->source = b->signature->source;
    b->function = r->function;
    return 0;
}

void binding_done(struct binding *b)
{
    call_args_done(&b->args);
    free(take_ptr(&b->signature));
}

/* ---- which function ---- */

static bool has_names(const struct call_request *r)
{
    return r->kwargs.p || (r->args.p && r->args.type == JSON_OBJECT);
}

bool binding_needs_inspector(const struct binding *b, unsigned lang_flags,
                             const struct call_request *r)
{
    if (lang_flags & CALL_MODULE || (!r->function.p && lang_flags & CALL_DETECTS))
        return false;
    if (!r->function.p || lang_flags & CALL_COMPILED)
        return true;
    return !(lang_flags & CALL_REFLECTS) && b->source != SIGNATURE_SCHEMA && has_names(r);
}

static int take_name(struct binding *b, struct json_value name, struct err *e)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(sizeof b->name);

    if (json_decode_string(name, JSON_LENIENT_UTF8, &text) < 0) {
        (void)err_set(e, ERR_CALLER, "the function's name is too long");
        return err_type(e, ERR_NONE, "InspectionError");
    }
    (void)snprintf(b->name, sizeof b->name, "%s", text.p ? text.p : "");
    b->function = (struct bytes){b->name, strlen(b->name)};
    return 0;
}

int binding_check(const struct binding *b, struct json_value function, struct err *e)
{
    struct json_value refused;

    if (!function.p) {
        (void)err_set(e, ERR_CALLER, "Function '%s' not found", b->function.p);
        return err_type(e, ERR_NONE, "NameError");
    }
    if (!json_get(function, "refused", &refused) || refused.type != JSON_STRING)
        return 0;
    (void)err_set(e, ERR_CALLER, "%.*s",
                  refused.n < REFUSED_SHOWN ? (int)refused.n - 2 : REFUSED_SHOWN, refused.p + 1);
    return err_type(e, ERR_NONE, "SignatureError");
}

int binding_find(struct binding *b, unsigned lang_flags, struct json_value inspected,
                 struct json_value *ret_function, struct err *e)
{
    static const char body_name[] = "__anonymous_wrapper__";
    struct call_found found;

    if (signature_find(inspected, b->function.p, b->function.n, &found, e) < 0)
        return err_type(e, ERR_NONE, "InspectionError");
    if (found.several) {
        (void)err_set(e, ERR_CALLER, "%s", found.words);
        return err_type(e, ERR_NONE, "DetectionError");
    }
    *ret_function = found.function;
    if (!b->function.p && !found.name.p) {
        b->body = true;
        b->function = (struct bytes){body_name, sizeof body_name - 1};
        return 0;
    }
    if (!b->function.p && take_name(b, found.name, e) < 0)
        return -1;
    return lang_flags & CALL_COMPILED ? binding_check(b, found.function, e) : 0;
}

int binding_infer(struct binding *b, struct json_value function, struct err *e)
{
    if (b->source == SIGNATURE_SCHEMA)
        return 0;
    if (signature_from_function(b->signature, function, e) < 0)
        return err_type(e, ERR_NONE, "InspectionError");
    b->source = SIGNATURE_INFERRED;
    return 0;
}

/* ---- arguments ---- */

static int bind_args(struct binding *b, enum call_lang_id lang, const struct call_request *r,
                     struct err *e)
{
    struct call_signature *s = b->signature;
    const struct call_lang *l = call_lang(lang);

    if (call_args_collect(&b->args, r->args, r->kwargs, e) < 0 ||
        call_args_bind(&b->args, s, l->flags, e) < 0)
        return -1;
    if (s->strict && s->source == SIGNATURE_SCHEMA && call_args_check(&b->args, s, e) < 0)
        return -1;
    if (lang == CALL_JAVASCRIPT)
        b->options_at = call_args_options_at(&b->args, s);
    return call_args_representable(&b->args, l, e);
}

int binding_args(struct binding *b, enum call_lang_id lang, const struct call_request *r,
                 struct err *e)
{
    return bind_args(b, lang, r, e) < 0 ? err_type(e, ERR_CALLER, "TypeError") : 0;
}

static int bind_declared(struct binding *b, unsigned lang_flags, const struct call_request *r,
                         struct json_value function, struct err *e)
{
    struct call_signature *s = b->signature;

    s->n = 0;
    if (b->body) {
        s->result = dispatch_body_result(r->schema);
        return dispatch_bind(&b->args, s, e);
    }
    if (signature_from_function(s, function, e) < 0 ||
        call_args_bind(&b->args, s, lang_flags, e) < 0)
        return -1;
    if (b->source == SIGNATURE_CONVENTION)
        b->source = SIGNATURE_INFERRED;
    return dispatch_bind(&b->args, s, e);
}

int binding_declared(struct binding *b, unsigned lang_flags, const struct call_request *r,
                     struct json_value function, struct err *e)
{
    return bind_declared(b, lang_flags, r, function, e) < 0 ? err_type(e, ERR_CALLER, "TypeError")
                                                            : 0;
}
