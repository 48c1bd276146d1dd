/* SPDX-License-Identifier: MIT */
#include "http/shape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/jw.h"

void shaping_init(struct shaping *s, const void *user)
{
    s->user = user;
    s->arena = (struct buf){0};
    s->strings = NULL;
    s->issues_n = 0; /* not all the room for them, which is more than all else of a request */
}

void shaping_done(struct shaping *s)
{
    buf_done(&s->arena);
    free(s->strings);
    s->strings = NULL;
}

void shape_complain(struct shaping *s, const char *field, const char *member, const char *type,
                    const char *fmt, ...)
{
    struct shape_issue *i = &s->issues[s->issues_n];
    va_list ap;

    if (s->issues_n == SHAPE_ISSUES_MAX)
        return;
    s->issues_n++;
    *i = (struct shape_issue){.field = field, .type = type};
    (void)snprintf(i->member, sizeof i->member, "%s", member ? member : "");
    va_start(ap, fmt);
    (void)vsnprintf(i->msg, sizeof i->msg, fmt, ap);
    va_end(ap);
}

/* Room for the whole body was reserved, so that what was decoded never moves. */
static bool decode(struct shaping *s, struct json_value v, struct bytes *ret)
{
    size_t at = s->arena.n;

    if (json_decode_string(v, 0, &s->arena) < 0 || buf_putc(&s->arena, '\0') < 0)
        return false;
    *ret = (struct bytes){.p = s->arena.p + at, .n = s->arena.n - at - 1};
    return true;
}

/* ---- one function per type ---- */

typedef bool shape_take_fn(struct shaping *s, const struct shape_field *f, struct json_value v,
                           void *value);

static bool take_string(struct shaping *s, const struct shape_field *f, struct json_value v,
                        void *value)
{
    if (v.type != JSON_STRING)
        shape_complain(s, f->name, NULL, "string_type", "Input should be a valid string");
    else if (!decode(s, v, value))
        shape_complain(s, f->name, NULL, "string_unicode",
                       "Input should be a valid string, unable to parse raw data as a unicode "
                       "string");
    else
        return true;
    return false;
}

/* "30" is taken for 30, as FastAPI does. */
static bool int_of(struct json_value v, int64_t *ret, const char **ret_type, const char **ret_msg)
{
    struct json_value inner = {0};
    struct err e;
    double d;

    *ret_type = "int_type";
    *ret_msg = "Input should be a valid integer";
    if (v.type == JSON_STRING) {
        *ret_type = "int_parsing";
        *ret_msg = "Input should be a valid integer, unable to parse string as an integer";
        if (v.n < 2 || json_parse(v.p + 1, v.n - 2, 0, &inner, &e) < 0 || inner.type != JSON_NUMBER)
            return false;
        return json_to_int(inner, ret);
    }
    if (v.type != JSON_NUMBER)
        return false;
    if (json_to_int(v, ret))
        return true;
    if (json_to_double(v, &d) && (d > 1e18 || d < -1e18)) {
        *ret_type = "int_parsing_size";
        *ret_msg = "Unable to parse input string as an integer, exceeded maximum size";
    } else {
        *ret_type = "int_from_float";
        *ret_msg = "Input should be a valid integer, got a number with a fractional part";
    }
    return false;
}

static bool take_int(struct shaping *s, const struct shape_field *f, struct json_value v,
                     void *value)
{
    const char *type, *msg;
    int64_t *ret = value;

    if (!int_of(v, ret, &type, &msg))
        shape_complain(s, f->name, NULL, type, "%s", msg);
    else if (*ret < f->min)
        shape_complain(s, f->name, NULL, "greater_than_equal",
                       "Input should be greater than or equal to %" PRId64, f->min);
    else if (f->max != 0 && *ret > f->max)
        shape_complain(s, f->name, NULL, "less_than_equal",
                       "Input should be less than or equal to %" PRId64, f->max);
    else
        return true;
    return false;
}

static bool take_object(struct shaping *s, const struct shape_field *f, struct json_value v,
                        void *value)
{
    if (v.type != JSON_OBJECT) {
        shape_complain(s, f->name, NULL, "dict_type", "Input should be a valid dictionary");
        return false;
    }
    *(struct bytes *)value = (struct bytes){.p = v.p, .n = v.n};
    return true;
}

static bool take_member(struct shaping *s, const struct shape_field *f, struct json_value key,
                        struct json_value v, struct exec_var *ret)
{
    if (!decode(s, key, &ret->name)) {
        shape_complain(s, f->name, NULL, "string_unicode", "Keys should be valid strings");
        return false;
    }
    if (v.type != JSON_STRING || !decode(s, v, &ret->value)) {
        shape_complain(s, f->name, ret->name.p, "string_type", "Input should be a valid string");
        return false;
    }
    if (!exec_var_is_name(ret->name) || strlen(ret->value.p) != ret->value.n) {
        shape_complain(s, f->name, ret->name.p, "value_error",
                       "Names should not be empty or contain '=' or control characters, values "
                       "no NUL");
        return false;
    }
    if (ret->name.n + 1 + ret->value.n > EXEC_VAR_MAX) {
        shape_complain(s, f->name, ret->name.p, "value_error",
                       "Name and value should have at most %d bytes", EXEC_VAR_MAX - 1);
        return false;
    }
    return true;
}

static int by_name(const void *x, const void *y)
{
    const struct exec_var *const *a = x, *const *b = y;

    return strcmp((*a)->name.p, (*b)->name.p);
}

static void refuse_duplicates(struct shaping *s, const struct shape_field *f,
                              const struct shape_strings *all)
{
    const struct exec_var *sorted[SHAPE_STRINGS_MAX];

    for (size_t i = 0; i < all->n; i++)
        sorted[i] = &all->v[i];
    qsort(sorted, all->n, sizeof *sorted, by_name);
    for (size_t i = 1; i < all->n; i++) {
        if (strcmp(sorted[i - 1]->name.p, sorted[i]->name.p) == 0)
            shape_complain(s, f->name, sorted[i]->name.p, "value_error",
                           "Names should not be repeated");
    }
}

static bool take_strings(struct shaping *s, const struct shape_field *f, struct json_value v,
                         void *value)
{
    struct shape_strings *out = value;
    struct json_value key, one;
    size_t at = 0, count = 0;

    if (v.type != JSON_OBJECT) {
        shape_complain(s, f->name, NULL, "dict_type", "Input should be a valid dictionary");
        return false;
    }
    while (json_object_next(v, &at, &key, &one))
        count++;
    free(s->strings);
    s->strings = count <= SHAPE_STRINGS_MAX ? calloc(count + 1, sizeof *s->strings) : NULL;
    if (!s->strings) {
        shape_complain(s, f->name, NULL, "too_long", "Dictionary should have at most %d items",
                       SHAPE_STRINGS_MAX);
        return false;
    }
    *out = (struct shape_strings){.v = s->strings};
    for (at = 0; json_object_next(v, &at, &key, &one);) {
        if (take_member(s, f, key, one, &out->v[out->n]))
            out->n++;
    }
    refuse_duplicates(s, f, out);
    return true;
}

static bool take_list(struct shaping *s, const struct shape_field *f, struct json_value v,
                      void *value)
{
    struct shape_strings *out = value;
    struct json_value one;
    size_t at = 0, count = 0;
    char index[24];

    if (v.type != JSON_ARRAY) {
        shape_complain(s, f->name, NULL, "list_type", "Input should be a valid list");
        return false;
    }
    while (json_array_next(v, &at, &one))
        count++;
    free(s->strings);
    s->strings = count <= SHAPE_STRINGS_MAX ? calloc(count + 1, sizeof *s->strings) : NULL;
    if (!s->strings) {
        shape_complain(s, f->name, NULL, "too_long", "List should have at most %d items",
                       SHAPE_STRINGS_MAX);
        return false;
    }
    *out = (struct shape_strings){.v = s->strings};
    for (at = 0; json_array_next(v, &at, &one); out->n++) {
        (void)snprintf(index, sizeof index, "%zu", out->n);
        if (one.type != JSON_STRING || !decode(s, one, &out->v[out->n].value))
            shape_complain(s, f->name, index, "string_type", "Input should be a valid string");
    }
    return true;
}

/* clang-format off */
static shape_take_fn *const takers[] = {
    [SHAPE_STRING]  = take_string,
    [SHAPE_INT]     = take_int,
    [SHAPE_OBJECT]  = take_object,
    [SHAPE_STRINGS] = take_strings,
    [SHAPE_LIST]    = take_list,
};
/* clang-format on */

/* A value of the envelope, if it was there. */
struct slot {
    struct json_value v;
    bool there;
};

/* One pass: looking each field up would walk over large values again and again. */
static void find_fields(const struct shape *shape, struct json_value body, struct slot *slots)
{
    struct json_value key, v;
    size_t at = 0;

    while (json_object_next(body, &at, &key, &v)) {
        for (size_t i = 0; i < shape->n; i++) {
            if (json_key_is(key, shape->fields[i].name))
                slots[i] = (struct slot){.v = v, .there = true};
        }
    }
}

static void take_field(const struct shape_field *f, const struct slot *slot, void *target,
                       struct shaping *s)
{
    void *value = (char *)target + f->at;

    if (!slot->there) {
        if (f->flags & SHAPE_REQUIRED)
            shape_complain(s, f->name, NULL, "missing", "Field required");
        return;
    }
    if (slot->v.type == JSON_NULL && f->flags & SHAPE_NULLABLE)
        return;
    if (takers[f->type](s, f, slot->v, value) && f->check)
        f->check(s, f, value);
}

int shape_parse(const struct shape *shape, const char *text, size_t n, void *target,
                struct shaping *s)
{
    struct slot slots[SHAPE_FIELDS_MAX] = {0};
    struct json_value body;
    struct err e;

    assert(shape->n <= SHAPE_FIELDS_MAX);
    if (json_parse(text, n, 0, &body, &e) < 0) {
        shape_complain(s, NULL, NULL, "json_invalid", "JSON decode error: %.150s", e.text);
        return -1;
    }
    if (body.type != JSON_OBJECT) {
        shape_complain(s, NULL, NULL, "model_attributes_type",
                       "Input should be a valid dictionary or object to extract fields from");
        return -1;
    }
    s->arena = BUF_INIT(n + 1);
    if (buf_reserve(&s->arena, n) < 0) {
        shape_complain(s, NULL, NULL, "too_large", "No memory for a body of this size");
        return -1;
    }
    find_fields(shape, body, slots);
    for (size_t i = 0; i < shape->n; i++)
        take_field(&shape->fields[i], &slots[i], target, s);
    return s->issues_n > 0 ? -1 : 0;
}

void shape_issues_json(const struct shaping *s, struct buf *out)
{
    struct jw w = JW(out);

    jw_array(&w);
    for (size_t i = 0; i < s->issues_n; i++) {
        const struct shape_issue *issue = &s->issues[i];

        jw_object(&w);
        jw_kv_string(&w, "type", issue->type);
        jw_key(&w, "loc");
        jw_array(&w);
        jw_string(&w, "body");
        if (issue->field)
            jw_string(&w, issue->field);
        if (issue->member[0])
            jw_string(&w, issue->member);
        jw_array_end(&w);
        jw_kv_string(&w, "msg", issue->msg);
        jw_object_end(&w);
    }
    jw_array_end(&w);
}
