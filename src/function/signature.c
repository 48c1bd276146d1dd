/* SPDX-License-Identifier: MIT */
#include "function/signature.h"

#include <stdio.h>
#include <string.h>

const char *signature_source_name(enum signature_source s)
{
    static const char *const names[] = {"convention", "inferred", "schema"};

    return names[s];
}

static bool member_bool(struct json_value object, const char *name, bool otherwise)
{
    struct json_value v = json_member(object, name);
    bool b;

    return v.p && json_to_bool(v, &b) ? b : otherwise;
}

static int member_index(struct json_value object, const char *name)
{
    struct json_value v = json_member(object, name);
    int64_t i;

    return v.p && json_to_int(v, &i) && i >= 0 && i < CALL_PARAMS_MAX ? (int)i : -1;
}

static struct call_param *add(struct call_signature *s, struct err *e)
{
    if (s->n == CALL_PARAMS_MAX) {
        (void)err_set(e, ERR_CALLER, "more than %d parameters", CALL_PARAMS_MAX);
        return NULL;
    }
    s->params[s->n] = (struct call_param){.index = -1};
    return &s->params[s->n++];
}

/* ---- schema ---- */

static int add_schema(struct call_signature *s, struct json_value name, struct json_value schema,
                      int index, struct err *e)
{
    struct call_param *p;

    if (schema.type != JSON_OBJECT)
        return err_set(e, ERR_CALLER, "schema.input: each parameter should be an object");
    p = add(s, e);
    if (!p)
        return -1;
    p->name = name;
    p->schema = schema;
    (void)json_get(schema, "default", &p->fallback); /* null is a value like any other here */
    p->required = member_bool(schema, "required", false);
    p->index = index >= 0 ? index : member_index(schema, "index");
    p->kind = p->index >= 0 ? PARAM_POSITIONAL : PARAM_KEYWORD;
    return 0;
}

int signature_from_schema(struct call_signature *s, struct json_value schema, struct err *e)
{
    struct json_value input = json_member(schema, "input"), key, v;
    size_t at = 0;

    s->n = 0;
    s->strict = member_bool(schema, "strict", false);
    s->result = json_member(schema, "output");
    if (!input.p)
        return 0;
    s->source = SIGNATURE_SCHEMA;
    if (input.type == JSON_ARRAY) {
        while (json_array_next(input, &at, &v)) {
            struct json_value name = json_member(v, "name");

            if (name.p && name.type != JSON_STRING)
                return err_set(e, ERR_CALLER, "schema.input: a name should be a string");
            if (add_schema(s, name, v, (int)s->n, e) < 0)
                return -1;
        }
        return 0;
    }
    if (input.type != JSON_OBJECT)
        return err_set(e, ERR_CALLER, "schema.input: should be an array or an object");
    while (json_object_next(input, &at, &key, &v))
        if (add_schema(s, key, v, -1, e) < 0)
            return -1;
    return 0;
}

/* ---- the inspector's answer ---- */

static void name_candidates(struct json_value list, struct call_found *ret)
{
    struct json_value v;
    size_t at = 0, n;

    n = (size_t)snprintf(ret->words, sizeof ret->words, "Multiple functions detected: [");
    for (size_t i = 0; json_array_next(list, &at, &v) && n < sizeof ret->words / 2; i++) {
        cleanup_with(buf_done) struct buf name = BUF_INIT(512);

        if (v.type == JSON_STRING && json_decode_string(v, JSON_LENIENT_UTF8, &name) == 0)
            n += (size_t)snprintf(ret->words + n, sizeof ret->words - n, "%s%.64s", i ? ", " : "",
                                  name.p ? name.p : "");
    }
    (void)snprintf(ret->words + n, sizeof ret->words - n,
                   "]. Please specify functionName manually.");
}

static bool same(struct json_value string, const char *name, size_t n)
{
    char copy[512];

    if (string.type != JSON_STRING || n >= sizeof copy)
        return false;
    memcpy(copy, name, n);
    copy[n] = '\0';
    return json_key_is(string, copy);
}

/* The last definition of a name counts; one with a body rather than a declaration. */
static void look_up(struct json_value functions, const char *name, size_t n, struct call_found *ret)
{
    struct json_value f;
    size_t at = 0;

    while (functions.p && functions.type == JSON_ARRAY && json_array_next(functions, &at, &f)) {
        struct json_value its = json_member(f, "name"), kind = json_member(f, "kind"),
                          full = json_member(f, "qualifiedName");
        bool plain = its.p && same(its, name, n) && member_bool(f, "topLevel", false);

        if (!plain && !(full.p && same(full, name, n)))
            continue;
        if (ret->function.p && kind.p && json_key_is(kind, "declaration"))
            continue;
        ret->function = f;
    }
}

int signature_find(struct json_value inspected, const char *name, size_t n, struct call_found *ret,
                   struct err *e)
{
    struct json_value detected = json_member(inspected, "detected"),
                      functions = json_member(inspected, "functions"),
                      candidates = json_member(detected, "candidates"), item;
    size_t at = 0, count = 0;

    *ret = (struct call_found){0};
    if (!detected.p || !functions.p || functions.type != JSON_ARRAY)
        return err_set(e, ERR_BUG, "the inspector's answer has no functions");
    if (!name) {
        ret->name = json_member(detected, "name");
        if (ret->name.p && ret->name.type != JSON_STRING)
            return err_set(e, ERR_BUG, "the inspector's answer has no name");
        while (candidates.p && candidates.type == JSON_ARRAY &&
               json_array_next(candidates, &at, &item))
            count++;
        if (!ret->name.p && count > 1) {
            ret->several = true;
            name_candidates(candidates, ret);
        }
        if (!ret->name.p || ret->name.n < 3)
            return 0;
        name = ret->name.p + 1; /* names of functions need no escapes worth decoding here */
        n = ret->name.n - 2;
    }
    look_up(functions, name, n, ret);
    return 0;
}

static bool kind_of(struct json_value v, enum param_kind *ret)
{
    static const char *const names[] = {"positional", "positionalOnly", "keyword", "variadic",
                                        "kwargs",     "options",        "block"};

    _Static_assert(ARRAY_LEN(names) == PARAM_KINDS, "every kind has a name");
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (v.p && v.type == JSON_STRING && json_key_is(v, names[i])) {
            *ret = (enum param_kind)i;
            return true;
        }
    return false;
}

int signature_from_function(struct call_signature *s, struct json_value function, struct err *e)
{
    struct json_value list = json_member(function, "parameters"), v;
    size_t at = 0;

    s->n = 0;
    s->source = SIGNATURE_INFERRED;
    s->result = json_member(function, "returnNative");
    s->contested = member_bool(function, "contested", false);
    while (list.p && list.type == JSON_ARRAY && json_array_next(list, &at, &v)) {
        struct call_param *p = add(s, e);

        if (!p)
            return -1;
        p->name = json_member(v, "name");
        if (!p->name.p || p->name.type != JSON_STRING || !kind_of(json_member(v, "kind"), &p->kind))
            return err_set(e, ERR_BUG, "the inspector's answer has a parameter without kind");
        p->index = member_index(v, "index");
        p->required = member_bool(v, "required", false);
        p->schema = json_member(v, "schema");
        p->native = json_member(v, "native");
        p->fallback = json_member(v, "defaultValue");
    }
    return 0;
}
