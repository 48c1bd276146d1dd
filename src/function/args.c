/* SPDX-License-Identifier: MIT */
#include "function/args.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const struct json_value hole;

/* ---- lists ---- */

static int no_memory(struct err *e)
{
    return err_set(e, ERR_HOST, "out of memory");
}

static int reach(struct call_args *a, size_t n, struct err *e)
{
    size_t cap = a->cap ? a->cap : 8;
    struct json_value *at;

    if (n > CALL_POSITIONS_MAX)
        return err_set(e, ERR_CALLER, "args: more than %d positions", CALL_POSITIONS_MAX);
    while (cap < n)
        cap *= 2;
    if (cap > a->cap) {
        at = reallocarray(a->at, cap, sizeof *at);
        if (!at)
            return no_memory(e);
        a->at = at;
        a->cap = cap;
    }
    for (; a->n < n; a->n++)
        a->at[a->n] = hole;
    return 0;
}

static int put_at(struct call_args *a, size_t i, struct json_value v, struct err *e)
{
    if (i >= a->n && reach(a, i + 1, e) < 0)
        return -1;
    a->at[i] = v;
    return 0;
}

static uint64_t key_hash(struct json_value key)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(key.n);

    if (key.type == JSON_STRING && memchr(key.p, '\\', key.n) &&
        json_decode_string(key, 0, &text) == 0)
        return hash_bytes(0, text.p ? text.p : "", text.n);
    return hash_bytes(0, key.p + 1, key.n >= 2 ? key.n - 2 : 0); /* without its quotes */
}

/* The same bytes, or the same text spelt with other escapes. */
static bool same_key(struct json_value x, struct json_value y)
{
    cleanup_with(buf_done) struct buf a = BUF_INIT(x.n), b = BUF_INIT(y.n);

    if (x.n == y.n && memcmp(x.p, y.p, x.n) == 0)
        return true;
    if (x.type != JSON_STRING || y.type != JSON_STRING ||
        (!memchr(x.p, '\\', x.n) && !memchr(y.p, '\\', y.n)))
        return false;
    return json_decode_string(x, 0, &a) == 0 && json_decode_string(y, 0, &b) == 0 && a.n == b.n &&
           (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Where hashes differ, texts do: a client may bring thousands of names. */
static ssize_t find_name(const struct call_args *a, struct json_value key)
{
    uint64_t hash = key.p && a->names_n > 0 ? key_hash(key) : 0;

    for (size_t i = 0; key.p && i < a->names_n; i++)
        if (a->names[i].hash == hash && same_key(a->names[i].key, key))
            return (ssize_t)i;
    return -1;
}

static int put_name(struct call_args *a, struct json_value key, struct json_value v, struct err *e)
{
    ssize_t known = find_name(a, key);
    struct call_name *names;

    if (known >= 0) {
        a->names[known].value = v;
        return 0;
    }
    if (a->names_n == a->names_cap) {
        size_t cap = a->names_cap ? 2 * a->names_cap : 8;

        if (cap > CALL_NAMES_MAX)
            return err_set(e, ERR_CALLER, "kwargs: more than %d names", CALL_NAMES_MAX);
        names = reallocarray(a->names, cap, sizeof *names);
        if (!names)
            return no_memory(e);
        a->names = names;
        a->names_cap = cap;
    }
    a->names[a->names_n++] = (struct call_name){key, v, key_hash(key)};
    return 0;
}

int call_args_options_at(const struct call_args *a, const struct call_signature *s)
{
    int last = -1, at = -1;

    for (size_t i = 0; i < s->n; i++) {
        if (s->params[i].kind == PARAM_OPTIONS && s->params[i].index >= 0)
            at = s->params[i].index;
        if (s->params[i].kind != PARAM_VARIADIC && s->params[i].index > last)
            last = s->params[i].index;
    }
    if (at < 0 && last >= 0 && ((size_t)last >= a->n || !a->at[last].p) && a->names_n > 0)
        at = last;
    return at;
}

void call_args_done(struct call_args *a)
{
    free(a->at);
    free(a->names);
    *a = (struct call_args){0};
}

/* ---- what was given ---- */

/* Exactly {"index": a whole number, "value": anything}: everything else is a value. */
static bool is_placed(struct json_value v, int64_t *ret_index, struct json_value *ret)
{
    struct json_value key, member, index = {0}, value = {0};
    size_t at = 0, count = 0;

    if (v.type != JSON_OBJECT)
        return false;
    while (count < 3 && json_object_next(v, &at, &key, &member)) {
        count++;
        if (json_key_is(key, "index"))
            index = member;
        else if (json_key_is(key, "value"))
            value = member;
    }
    if (count != 2 || !index.p || !value.p || !json_to_int(index, ret_index) || *ret_index < 0)
        return false;
    *ret = value;
    return true;
}

static int put_placed(struct call_args *a, int64_t index, struct json_value v, struct err *e)
{
    if (index >= CALL_POSITIONS_MAX)
        return err_set(e, ERR_CALLER, "args: index %lld, at most %d", (long long)index,
                       CALL_POSITIONS_MAX - 1);
    return put_at(a, (size_t)index, v, e);
}

static int collect_array(struct call_args *a, struct json_value args, struct err *e)
{
    struct json_value v, placed;
    size_t at = 0;
    int64_t index;

    for (size_t i = 0; json_array_next(args, &at, &v); i++) {
        int r =
            is_placed(v, &index, &placed) ? put_placed(a, index, placed, e) : put_at(a, i, v, e);

        if (r < 0)
            return -1;
    }
    return 0;
}

static int collect_object(struct call_args *a, struct json_value args, struct err *e)
{
    struct json_value key, v, placed;
    size_t at = 0;
    int64_t index;

    while (json_object_next(args, &at, &key, &v)) {
        int r = is_placed(v, &index, &placed) ? put_placed(a, index, placed, e)
                                              : put_name(a, key, v, e);

        if (r < 0)
            return -1;
    }
    return 0;
}

int call_args_collect(struct call_args *a, struct json_value args, struct json_value kwargs,
                      struct err *e)
{
    struct json_value key, v;
    size_t at = 0;

    *a = (struct call_args){0};
    while (kwargs.p && json_object_next(kwargs, &at, &key, &v))
        if (put_name(a, key, v, e) < 0)
            return -1;
    if (!args.p)
        return 0;
    return args.type == JSON_ARRAY ? collect_array(a, args, e) : collect_object(a, args, e);
}

/* ---- binding ---- */

static const struct call_param *param_at(const struct call_signature *s, size_t index)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->params[i].index == (int)index && s->params[i].kind != PARAM_VARIADIC)
            return &s->params[i];
    return NULL;
}

static size_t positions(const struct call_signature *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->params[i].index >= (int)n && s->params[i].kind != PARAM_VARIADIC)
            n = (size_t)s->params[i].index + 1;
    return n;
}

static struct json_value take_name(struct call_args *a, size_t i)
{
    struct json_value v = a->names[i].value;

    memmove(&a->names[i], &a->names[i + 1], (a->names_n - i - 1) * sizeof a->names[0]);
    a->names_n--;
    return v;
}

/* A null is a hole where its parameter is given by name, too: what many clients make of a position
 * that was left out. Where a language has names, an argument behind a gap keeps its name: so a
 * default in the gap stays what the function says it is. */
static int fill(struct call_args *a, const struct call_signature *s, bool keywords, struct err *e)
{
    bool gap = false;

    for (size_t i = 0; i < positions(s); i++) {
        const struct call_param *p = param_at(s, i);
        bool empty = i >= a->n || !a->at[i].p, null = !empty && a->at[i].type == JSON_NULL;
        ssize_t named = p && (empty || null) ? find_name(a, p->name) : -1;

        if (!empty && named < 0)
            continue;
        if (named >= 0 && (null || !(gap && keywords))) {
            if (put_at(a, i, take_name(a, (size_t)named), e) < 0)
                return -1;
        } else if (named < 0 && p && p->fallback.p && s->source == SIGNATURE_SCHEMA) {
            if (put_at(a, i, p->fallback, e) < 0)
                return -1;
        } else {
            gap = true;
        }
    }
    return 0;
}

static int fill_names(struct call_args *a, const struct call_signature *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct call_param *p = &s->params[i];

        if (p->kind == PARAM_KEYWORD && p->fallback.p && s->source == SIGNATURE_SCHEMA &&
            p->name.p && find_name(a, p->name) < 0 && put_name(a, p->name, p->fallback, e) < 0)
            return -1;
    }
    return 0;
}

int call_args_bind(struct call_args *a, const struct call_signature *s, unsigned lang_flags,
                   struct err *e)
{
    if (fill(a, s, lang_flags & CALL_KEYWORDS, e) < 0)
        return -1;
    return fill_names(a, s, e);
}

/* ---- checking ---- */

static bool is_integer(struct json_value v)
{
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] == '.' || v.p[i] == 'e' || v.p[i] == 'E')
            return false;
    return true;
}

static bool has_type(struct json_value v, struct json_value type)
{
    static const struct {
        const char *name;
        enum json_type type;
    } rows[] = {
        {"null",    JSON_NULL  },
        {"boolean", JSON_BOOL  },
        {"bool",    JSON_BOOL  },
        {"number",  JSON_NUMBER},
        {"float",   JSON_NUMBER},
        {"integer", JSON_NUMBER},
        {"int",     JSON_NUMBER},
        {"string",  JSON_STRING},
        {"array",   JSON_ARRAY },
        {"object",  JSON_OBJECT},
    };
    int64_t whole;

    if (type.type != JSON_STRING)
        return true;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (json_key_is(type, rows[i].name))
            return v.type == rows[i].type && (strncmp(rows[i].name, "int", 3) != 0 ||
                                              is_integer(v) || json_to_int(v, &whole));
    return true; /* "any", or a word of the caller's own */
}

static bool fits(struct json_value v, struct json_value schema)
{
    struct json_value type, one;
    size_t at = 0;

    if (!schema.p || schema.type != JSON_OBJECT || !json_get(schema, "type", &type))
        return true;
    if (type.type != JSON_ARRAY)
        return has_type(v, type);
    while (json_array_next(type, &at, &one))
        if (has_type(v, one))
            return true;
    return false;
}

static bool is_listed(struct json_value v, struct json_value schema)
{
    struct json_value list, one;
    size_t at = 0;

    if (!schema.p || schema.type != JSON_OBJECT || !json_get(schema, "enum", &list) ||
        list.type != JSON_ARRAY)
        return true;
    while (json_array_next(list, &at, &one))
        if (same_key(one, v))
            return true;
    return false;
}

static int check_param(const struct call_args *a, const struct call_param *p, size_t number,
                       struct err *e)
{
    size_t shown = p->name.n > 66 ? 64 : p->name.n ? p->name.n - 2 : 0;
    const char *name = p->name.p ? p->name.p + 1 : "";
    struct json_value v = {0}, type;
    ssize_t named = find_name(a, p->name);

    if (p->index >= 0 && (size_t)p->index < a->n)
        v = a->at[p->index];
    if (!v.p && named >= 0)
        v = a->names[named].value;
    if (!v.p && p->required)
        return err_set(e, ERR_CALLER, "parameter '%.*s' (number %zu) is required", (int)shown, name,
                       number);
    if (v.p && !fits(v, p->schema)) {
        (void)json_get(p->schema, "type", &type);
        return err_set(e, ERR_CALLER,
                       "parameter '%.*s' (number %zu) should be of type %.*s, not %s", (int)shown,
                       name, number, type.n < 80 ? (int)type.n : 80, type.p,
                       json_type_name(v.type));
    }
    if (v.p && !is_listed(v, p->schema))
        return err_set(e, ERR_CALLER,
                       "parameter '%.*s' (number %zu) is not one of the values allowed", (int)shown,
                       name, number);
    return 0;
}

int call_args_check(const struct call_args *a, const struct call_signature *s, struct err *e)
{
    for (size_t i = 0; i < s->n; i++)
        if (check_param(a, &s->params[i], i + 1, e) < 0)
            return -1;
    return 0;
}

/* ---- what a language can represent ---- */

/* Would a program that has only doubles write down the digits that it was given? Of those that lie
 * beside the value it writes as few as tell it from its neighbours, and zeros for the rest. */
static bool survives_double(const char *text, double d)
{
    char shown[40], plain[40];
    int digits = 1, exponent, n = 0;

    do
        (void)snprintf(shown, sizeof shown, "%.*e", digits - 1, d);
    while (strtod(shown, NULL) != d && digits++ < 17);
    exponent = (int)strtol(strchr(shown, 'e') + 1, NULL, 10);
    for (const char *at = shown; *at != 'e'; at++)
        if (*at != '.')
            plain[n++] = *at;
    while (n < exponent + 1 + (d < 0) && n < (int)sizeof plain - 1)
        plain[n++] = '0';
    plain[n] = '\0';
    return strcmp(plain, text) == 0;
}

static bool is_exact(const char *p, size_t n, unsigned flags)
{
    char text[32];
    long long v;

    if (n >= sizeof text - 1) /* longer than any 64-bit integer */
        return !(flags & (CALL_INT53 | CALL_INT64));
    memcpy(text, p, n);
    text[n] = '\0';
    errno = 0;
    v = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return !(flags & (CALL_INT53 | CALL_INT64));
    return !(flags & CALL_INT53) || (v >= -(1LL << 53) && v <= 1LL << 53) ||
           survives_double(text, (double)v);
}

static unsigned hex4(const char *p)
{
    unsigned v = 0;

    for (int i = 0; i < 4; i++) {
        char c = p[i];

        v = v * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return v;
}

/* At the quote; returns the length of the string. */
static size_t scan_string(const char *p, size_t n, bool *ret_lone)
{
    size_t i = 1;

    /* Byte by byte: looking ahead for the quote at every escape would take its square. */
    while (i < n && p[i] != '"') {
        if (p[i] != '\\') {
            i++;
            continue;
        }
        if (p[i + 1] != 'u') {
            i += 2;
            continue;
        }
        unsigned u = hex4(p + i + 2);

        i += 6;
        if (u >= 0xd800 && u < 0xdc00 && i + 6 <= n && p[i] == '\\' && p[i + 1] == 'u' &&
            hex4(p + i + 2) >= 0xdc00 && hex4(p + i + 2) < 0xe000)
            i += 6;
        else if (u >= 0xd800 && u < 0xe000)
            *ret_lone = true;
    }
    return i + 1;
}

/* Beyond what a double can be? There is always a byte behind it that is no part of a number. */
static bool is_infinite(struct json_value v)
{
    const char *exponent = memchr(v.p, 'e', v.n);

    if (!exponent)
        exponent = memchr(v.p, 'E', v.n);
    if (v.n < DBL_MAX_10_EXP && (!exponent || v.p + v.n - exponent < 4)) /* as most are */
        return false;
    return isinf(strtod(v.p, NULL));
}

static int check_number(struct json_value number, const struct call_lang *lang, struct err *e)
{
    int shown = number.n < 60 ? (int)number.n : 60;

    if (!is_integer(number) && is_infinite(number))
        return err_set(e, ERR_CALLER, "the number %.*s is too large for %s", shown, number.p,
                       lang->name);
    if (is_integer(number) && !is_exact(number.p, number.n, lang->flags))
        return err_set(e, ERR_CALLER,
                       "the integer %.*s cannot be represented exactly in %s; pass it as a string",
                       shown, number.p, lang->name);
    return 0;
}

static int check_value(struct json_value v, const struct call_lang *lang, struct err *e)
{
    for (size_t i = 0; i < v.n;) {
        char c = v.p[i];
        bool lone = false;
        size_t len = 1;

        if (c == '"') {
            len = scan_string(v.p + i, v.n - i, &lone);
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            struct json_value number = {JSON_NUMBER, v.p + i, 0};

            while (i + len < v.n && strchr("0123456789+-.eE", v.p[i + len]))
                len++;
            number.n = len;
            if (check_number(number, lang, e) < 0)
                return -1;
        }
        if (lone && !(lang->flags & CALL_SURROGATES))
            return err_set(e, ERR_CALLER,
                           "a string with half of a surrogate pair cannot be represented in %s",
                           lang->name);
        i += len;
    }
    return 0;
}

int call_args_representable(const struct call_args *a, const struct call_lang *lang, struct err *e)
{
    if ((lang->flags & CALL_SURROGATES) && !(lang->flags & (CALL_INT53 | CALL_INT64)))
        return 0;
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i].p && check_value(a->at[i], lang, e) < 0)
            return err_wrap(e, "argument %zu", i + 1);
    for (size_t i = 0; i < a->names_n; i++)
        if (check_value(a->names[i].value, lang, e) < 0)
            return err_wrap(e, "argument %.*s",
                            a->names[i].key.n < 64 ? (int)a->names[i].key.n : 64,
                            a->names[i].key.p);
    return 0;
}

/* ---- as text ---- */

void call_args_json(const struct call_args *a, struct buf *out)
{
    (void)buf_putc(out, '[');
    for (size_t i = 0; i < a->n; i++) {
        if (i > 0)
            (void)buf_putc(out, ',');
        if (a->at[i].p)
            (void)buf_put(out, a->at[i].p, a->at[i].n);
        else
            (void)buf_puts(out, "null");
    }
    (void)buf_putc(out, ']');
}

void call_names_json(const struct call_args *a, struct buf *out)
{
    (void)buf_putc(out, '{');
    for (size_t i = 0; i < a->names_n; i++) {
        if (i > 0)
            (void)buf_putc(out, ',');
        (void)buf_put(out, a->names[i].key.p, a->names[i].key.n);
        (void)buf_putc(out, ':');
        (void)buf_put(out, a->names[i].value.p, a->names[i].value.n);
    }
    (void)buf_putc(out, '}');
}

void call_holes_json(const struct call_args *a, struct buf *out)
{
    bool first = true;

    (void)buf_putc(out, '[');
    for (size_t i = 0; i < a->n; i++)
        if (!a->at[i].p) {
            (void)buf_printf(out, "%s%zu", first ? "" : ",", i);
            first = false;
        }
    (void)buf_putc(out, ']');
}

bool call_args_has_holes(const struct call_args *a)
{
    for (size_t i = 0; i < a->n; i++)
        if (!a->at[i].p)
            return true;
    return false;
}
