/* SPDX-License-Identifier: MIT */
#include "core/shape.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/jw.h"
#include "core/nearest.h"

enum {
    LENIENT = JSON_LENIENT_TAIL | JSON_LENIENT_UTF8 | JSON_LENIENT_DUPES,
    LENIENT_GROWTH = 3, /* one bad byte becomes three */
    NUMBER_SHOWN = 24,  /* bytes of a number quoted in an issue */
};

/* ---- one body ---- */

struct shape_block {
    struct shape_block *next;
    struct exec_var v[]; /* or bytes */
};

void shaping_init(struct shaping *s, const void *user)
{
    *s = (struct shaping){.user = user};
}

void shaping_done(struct shaping *s)
{
    buf_done(&s->arena);
    while (s->blocks) {
        struct shape_block *b = s->blocks;

        s->blocks = b->next;
        free(b);
    }
    free(s->issues);
    s->issues = NULL;
    s->issues_n = 0;
    s->depth = 0;
}

static void *block_new(struct shaping *s, size_t bytes)
{
    struct shape_block *b = calloc(1, sizeof *b + bytes);

    if (!b)
        return NULL;
    b->next = s->blocks;
    s->blocks = b;
    return b->v;
}

static struct exec_var *strings_new(struct shaping *s, size_t n)
{
    return block_new(s, (n + 1) * sizeof(struct exec_var));
}

int shaping_reserve(struct shaping *s, size_t n)
{
    s->arena = BUF_INIT(n * (s->lenient ? LENIENT_GROWTH : 1) + s->room + 1);
    if (buf_reserve(&s->arena, s->arena.max - 1) == 0)
        return 0;
    shape_complain(s, NULL, NULL, "too_large", "No memory for a body of this size");
    return -1;
}

/* ---- issues ---- */

void shape_complain(struct shaping *s, const char *field, const char *member, const char *type,
                    const char *fmt, ...)
{
    struct shape_issue *i;
    va_list ap;

    if (!s->issues)
        s->issues = calloc(SHAPE_ISSUES_MAX, sizeof *s->issues);
    if (s->issues_n == SHAPE_ISSUES_MAX)
        return;
    s->issues_n++;
    if (!s->issues)
        return;
    i = &s->issues[s->issues_n - 1];
    *i = (struct shape_issue){.field = field, .type = type};
    memcpy(i->in, s->in, s->depth * sizeof *i->in);
    (void)snprintf(i->member, sizeof i->member, "%s", member ? member : "");
    va_start(ap, fmt);
    (void)vsnprintf(i->msg, sizeof i->msg, fmt, ap);
    va_end(ap);
}

static void write_issue(struct jw *w, const struct shape_issue *issue)
{
    jw_object(w);
    jw_kv_string(w, "type", issue->type);
    jw_key(w, "loc");
    jw_array(w);
    jw_string(w, "body");
    for (size_t i = 0; i < SHAPE_DEPTH_MAX && issue->in[i]; i++)
        jw_string(w, issue->in[i]);
    if (issue->field)
        jw_string(w, issue->field);
    if (issue->member[0])
        jw_string(w, issue->member);
    jw_array_end(w);
    jw_kv_string(w, "msg", issue->msg);
    jw_object_end(w);
}

void shape_issues_json(const struct shaping *s, struct buf *out)
{
    struct jw w = JW(out);

    jw_array(&w);
    for (size_t i = 0; s->issues && i < s->issues_n; i++)
        write_issue(&w, &s->issues[i]);
    jw_array_end(&w);
}

void shape_words(const struct shaping *s, char out[SHAPE_WORDS_MAX])
{
    const struct shape_issue *first = s->issues;
    size_t n = 0;

    if (!first) {
        (void)snprintf(out, SHAPE_WORDS_MAX, "out of memory");
        return;
    }
    for (size_t i = 0; i < SHAPE_DEPTH_MAX && first->in[i]; i++)
        n += (size_t)snprintf(out + n, SHAPE_WORDS_MAX - n, "%s%s", n ? "." : "", first->in[i]);
    if (first->field)
        n += (size_t)snprintf(out + n, SHAPE_WORDS_MAX - n, "%s%s", n ? "." : "", first->field);
    (void)snprintf(out + n, SHAPE_WORDS_MAX - n, "%s%s", n ? ": " : "", first->msg);
}

int shape_err(const struct shaping *s, struct err *e)
{
    char words[SHAPE_WORDS_MAX];

    shape_words(s, words);
    return err_set(e, ERR_CALLER, "%s%s",
                   s->issues && !s->issues->field && !s->issues->in[0] ? "body: " : "", words);
}

const struct shape_field *shape_nearest(const struct shape *shape, const char *name)
{
    struct nearest n;

    nearest_begin(&n, name);
    for (size_t i = 0; i < shape->n; i++)
        if (!(shape->fields[i].flags & SHAPE_OLD))
            nearest_look(&n, shape->fields[i].name);
    for (size_t i = 0; n.found && i < shape->n; i++)
        if (shape->fields[i].name == n.found)
            return &shape->fields[i];
    return NULL;
}

/* The name as somebody wrote it, cut to what an issue holds. */
static void quote_name(struct json_value key, char out[SHAPE_NAME_MAX])
{
    cleanup_with(buf_done) struct buf name = BUF_INIT(4 * SHAPE_NAME_MAX);

    if (json_decode_string(key, LENIENT, &name) == 0)
        (void)snprintf(out, SHAPE_NAME_MAX, "%s", name.p);
    else
        (void)snprintf(out, SHAPE_NAME_MAX, "%.*s", SHAPE_NAME_MAX - 1, key.p + 1);
}

static void complain_unknown(struct shaping *s, const struct shape *shape, struct json_value key)
{
    const struct shape_field *near;
    char name[SHAPE_NAME_MAX], known[128] = "";
    struct shape_issue *i;
    size_t n = 0;

    if (s->issues_n == SHAPE_ISSUES_MAX)
        return;
    quote_name(key, name);
    near = shape_nearest(shape, name);
    for (size_t k = 0; !near && k < shape->n && n < sizeof known; k++)
        if (!(shape->fields[k].flags & SHAPE_OLD))
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "",
                                  shape->fields[k].name);
    if (near)
        shape_complain(s, NULL, NULL, "extra_forbidden", "Unknown field, did you mean '%s'?",
                       near->name);
    else
        shape_complain(s, NULL, NULL, "extra_forbidden", "Unknown field; known are: %s%s", known,
                       n >= sizeof known ? "..." : "");
    if (!s->issues)
        return;
    i = &s->issues[s->issues_n - 1];
    memcpy(i->unknown, name, sizeof name);
    i->field = i->unknown;
}

/* ---- one function per type ---- */

/* Room for the whole body was reserved, so that what was decoded never moves. */
static bool decode(struct shaping *s, struct json_value v, struct bytes *ret)
{
    size_t at = s->arena.n;

    if (json_decode_string(v, s->lenient ? LENIENT : 0, &s->arena) < 0 ||
        buf_putc(&s->arena, '\0') < 0)
        return false;
    *ret = (struct bytes){.p = s->arena.p + at, .n = s->arena.n - at - 1};
    return true;
}

typedef bool shape_take_fn(struct shaping *s, const struct shape_field *f, struct json_value v,
                           void *value);

static bool is_string(struct shaping *s, const struct shape_field *f, struct json_value v)
{
    if (v.type == JSON_STRING)
        return true;
    if (v.type == JSON_NUMBER && v.n <= NUMBER_SHOWN)
        shape_complain(s, f->name, NULL, "string_type",
                       "Input should be a valid string: write \"%.*s\"", (int)v.n, v.p);
    else
        shape_complain(s, f->name, NULL, "string_type", "Input should be a valid string");
    return false;
}

static void complain_unicode(struct shaping *s, const struct shape_field *f)
{
    shape_complain(s, f->name, NULL, "string_unicode",
                   "Input should be a valid string, unable to parse raw data as a unicode "
                   "string");
}

static bool take_string(struct shaping *s, const struct shape_field *f, struct json_value v,
                        void *value)
{
    if (!is_string(s, f, v))
        return false;
    if (decode(s, v, value))
        return true;
    complain_unicode(s, f);
    return false;
}

static bool take_text(struct shaping *s, const struct shape_field *f, struct json_value v,
                      void *value)
{
    struct buf *out = value;

    if (!is_string(s, f, v))
        return false;
    buf_done(out);
    *out = BUF_INIT(v.n * (s->lenient ? LENIENT_GROWTH : 1) + 1);
    if (json_decode_string(v, s->lenient ? LENIENT : 0, out) == 0)
        return true;
    complain_unicode(s, f);
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

static bool take_number(struct shaping *s, const struct shape_field *f, struct json_value v,
                        void *value)
{
    struct json_value inner;
    struct err e;
    double d;

    if (!s->lenient && v.type == JSON_STRING && v.n > 2 &&
        json_parse(v.p + 1, v.n - 2, 0, &inner, &e) == 0)
        v = inner; /* "30" is taken for 30, as FastAPI does */
    if (v.type != JSON_NUMBER || !json_to_double(v, &d) || !isfinite(d))
        shape_complain(s, f->name, NULL, "float_type", "Input should be a valid number");
    else if (d < (double)f->min)
        shape_complain(s, f->name, NULL, "greater_than_equal",
                       "Input should be greater than or equal to %" PRId64, f->min);
    else if (f->max != 0 && d > (double)f->max && !s->lenient)
        shape_complain(s, f->name, NULL, "less_than_equal",
                       "Input should be less than or equal to %" PRId64, f->max);
    else {
        *(double *)value = f->max != 0 && d > (double)f->max ? (double)f->max : d;
        return true;
    }
    return false;
}

static bool take_bool(struct shaping *s, const struct shape_field *f, struct json_value v,
                      void *value)
{
    if (json_to_bool(v, value))
        return true;
    shape_complain(s, f->name, NULL, "bool_type", "Input should be true or false");
    return false;
}

static bool take_choice(struct shaping *s, const struct shape_field *f, struct json_value v,
                        void *value)
{
    char words[128] = "";
    size_t n = 0;

    for (int i = 0; f->words[i]; i++)
        if (v.type == JSON_STRING && json_key_is(v, f->words[i])) {
            *(int *)value = i;
            return true;
        }
    for (int i = 0; f->words[i] && n < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s'%s'",
                              i == 0            ? ""
                              : f->words[i + 1] ? ", "
                                                : " or ",
                              f->words[i]);
    shape_complain(s, f->name, NULL, "literal_error", "Input should be %s", words);
    return false;
}

static bool take_raw(struct shaping *s, const struct shape_field *f, struct json_value v,
                     void *value)
{
    if (f->accepts == 0 || f->accepts & BIT(v.type)) {
        *(struct json_value *)value = v;
        return true;
    }
    if (f->accepts == BIT(JSON_OBJECT))
        shape_complain(s, f->name, NULL, "dict_type", "Input should be a valid dictionary");
    else if (f->accepts == BIT(JSON_ARRAY))
        shape_complain(s, f->name, NULL, "list_type", "Input should be a valid list");
    else if (f->accepts == BIT(JSON_BOOL))
        shape_complain(s, f->name, NULL, "bool_type", "Input should be true or false");
    else
        shape_complain(s, f->name, NULL, "value_error", "Input should not be %s%s",
                       v.type == JSON_ARRAY || v.type == JSON_OBJECT ? "an " : "a ",
                       json_type_name(v.type));
    return false;
}

static bool take_nested(struct shaping *s, const struct shape_field *f, struct json_value v,
                        void *value)
{
    return shape_value(f->inner, v, f->name, value, s) == 0;
}

/* ---- objects and lists of strings ---- */

static bool take_member(struct shaping *s, const struct shape_field *f, struct json_value key,
                        struct json_value v, struct exec_var *ret)
{
    ret->value = (struct bytes){"", 0};
    if (!decode(s, key, &ret->name)) {
        shape_complain(s, f->name, NULL, "string_unicode", "Keys should be valid strings");
        return false;
    }
    if (s->lenient && v.type == JSON_NULL)
        return true;
    if (v.type != JSON_STRING || !decode(s, v, &ret->value)) {
        shape_complain(s, f->name, ret->name.p, "string_type", "Input should be a valid string");
        return false;
    }
    if (s->lenient)
        return true;
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

/* By name, then by place. */
static int by_name(const void *x, const void *y)
{
    const struct exec_var *a = *(const struct exec_var *const *)x;
    const struct exec_var *b = *(const struct exec_var *const *)y;
    size_t n = a->name.n < b->name.n ? a->name.n : b->name.n;
    int order = memcmp(a->name.p, b->name.p, n);

    if (order != 0)
        return order;
    if (a->name.n != b->name.n)
        return a->name.n < b->name.n ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool same_name(const struct exec_var *a, const struct exec_var *b)
{
    return a->name.n == b->name.n && memcmp(a->name.p, b->name.p, a->name.n) == 0;
}

/* Of variables with one name the last stays; strictly, there is no such name. */
static bool settle_duplicates(struct shaping *s, const struct shape_field *f,
                              struct shape_strings *all)
{
    cleanup_free struct exec_var **sorted = calloc(all->n + 1, sizeof *sorted);
    size_t kept = 0;

    for (size_t i = 0; sorted && i < all->n; i++)
        sorted[i] = &all->v[i];
    if (!sorted) {
        shape_complain(s, f->name, NULL, "too_long", "No memory for so many");
        return false;
    }
    qsort(sorted, all->n, sizeof *sorted, by_name);
    for (size_t i = 1; i < all->n; i++) {
        if (!same_name(sorted[i - 1], sorted[i]))
            continue;
        if (!s->lenient)
            shape_complain(s, f->name, sorted[i]->name.p, "value_error",
                           "Names should not be repeated");
        sorted[i - 1]->name.p = NULL;
    }
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].name.p)
            all->v[kept++] = all->v[i];
    all->n = kept;
    return true;
}

/* Room for `count` more behind those that are there. */
static bool strings_grow(struct shaping *s, const struct shape_field *f, size_t count,
                         struct shape_strings *out)
{
    size_t most = f->max ? (size_t)f->max : SHAPE_STRINGS_MAX;
    struct exec_var *v = NULL;

    if (out->n + count <= most)
        v = strings_new(s, out->n + count);
    if (!v) {
        shape_complain(s, f->name, NULL, "too_long", "%s should have at most %zu items",
                       f->type == SHAPE_LIST ? "List" : "Dictionary", most);
        return false;
    }
    if (out->n > 0)
        memcpy(v, out->v, out->n * sizeof *v);
    out->v = v;
    return true;
}

/* One member of an object; false: it was complained about. */
typedef bool take_member_fn(struct shaping *s, const struct shape_field *f, struct json_value key,
                            struct json_value value, struct exec_var *ret);

/* The members of an object behind those that are there. */
static bool take_members(struct shaping *s, const struct shape_field *f, struct json_value v,
                         take_member_fn *take, struct shape_strings *out)
{
    struct json_value key, one;
    size_t at = 0, count = 0;

    if (v.type != JSON_OBJECT) {
        shape_complain(s, f->name, NULL, "dict_type", "Input should be a valid dictionary");
        return false;
    }
    while (json_object_next(v, &at, &key, &one))
        count++;
    if (!strings_grow(s, f, count, out))
        return false;
    for (at = 0; json_object_next(v, &at, &key, &one);)
        if (take(s, f, key, one, &out->v[out->n]))
            out->n++;
    return true;
}

static bool take_strings(struct shaping *s, const struct shape_field *f, struct json_value v,
                         void *value)
{
    return take_members(s, f, v, take_member, value) && settle_duplicates(s, f, value);
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
    *out = (struct shape_strings){0};
    if (!strings_grow(s, f, count, out))
        return false;
    for (at = 0; json_array_next(v, &at, &one); out->n++) {
        (void)snprintf(index, sizeof index, "%zu", out->n);
        if (one.type != JSON_STRING || !decode(s, one, &out->v[out->n].value))
            shape_complain(s, f->name, index, "string_type", "Input should be a valid string");
    }
    return true;
}

/* ---- files ---- */

static bool file_decode(struct shaping *s, struct json_value coded, struct bytes *ret)
{
    struct bytes text;
    struct buf out;

    if (coded.type != JSON_STRING || !decode(s, coded, &text))
        return false;
    out = BUF_INIT(text.n / 4 * 3 + 1);
    out.p = block_new(s, out.max);
    out.cap = out.max;
    if (!out.p || base64_decode(text.p, text.n, &out) < 0)
        return false;
    *ret = (struct bytes){out.p, out.n};
    return true;
}

/* A text, or an object with the one member "base64". */
static bool take_file(struct shaping *s, const struct shape_field *f, struct json_value key,
                      struct json_value v, struct exec_var *ret)
{
    struct json_value name, coded;
    size_t at = 0;
    bool good;

    if (!decode(s, key, &ret->name)) {
        shape_complain(s, f->name, NULL, "string_unicode", "Keys should be valid strings");
        return false;
    }
    if (v.type == JSON_OBJECT)
        good = json_object_next(v, &at, &name, &coded) && json_key_is(name, "base64") &&
               file_decode(s, coded, &ret->value) && !json_object_next(v, &at, &name, &coded);
    else
        good = v.type == JSON_STRING && decode(s, v, &ret->value);
    if (!good)
        shape_complain(s, f->name, ret->name.p, "value_error",
                       "Input should be a text or {\"base64\": \"...\"}");
    return good;
}

static bool take_files(struct shaping *s, const struct shape_field *f, struct json_value v,
                       void *value)
{
    struct shape_strings *out = value;

    *out = (struct shape_strings){0};
    return take_members(s, f, v, take_file, out);
}

/* ---- objects ---- */

/* clang-format off */
static shape_take_fn *const takers[] = {
    [SHAPE_STRING]  = take_string,
    [SHAPE_INT]     = take_int,
    [SHAPE_NUMBER]  = take_number,
    [SHAPE_BOOL]    = take_bool,
    [SHAPE_CHOICE]  = take_choice,
    [SHAPE_RAW]     = take_raw,
    [SHAPE_STRINGS] = take_strings,
    [SHAPE_LIST]    = take_list,
    [SHAPE_NESTED]  = take_nested,
    [SHAPE_FILES]   = take_files,
    [SHAPE_TEXT]    = take_text,
};
/* clang-format on */
_Static_assert(ARRAY_LEN(takers) == SHAPE_TYPE_COUNT, "every type can be taken");

/* The index of the field, or shape->n. */
static size_t find_field(const struct shape *shape, struct json_value key, bool any_case)
{
    size_t i = 0;
    char name[SHAPE_NAME_MAX];

    while (i < shape->n && !json_key_is(key, shape->fields[i].name))
        i++;
    if (i < shape->n || !any_case)
        return i;
    quote_name(key, name);
    for (i = 0; i < shape->n && strcasecmp(name, shape->fields[i].name) != 0;)
        i++;
    return i;
}

static void take_field(const struct shape *shape, const struct shape_field *f, struct json_value v,
                       void *target, struct shaping *s)
{
    void *value = (char *)target + f->at;

    if (v.type == JSON_NULL &&
        (s->lenient || f->flags & SHAPE_NULLABLE || shape->flags & SHAPE_NULLS))
        return;
    if (takers[f->type](s, f, v, value) && f->check)
        f->check(s, f, value);
}

/* In the order of the body, so that the last of two equal names wins. */
static void take_object(const struct shape *shape, struct json_value object, void *target,
                        struct shaping *s)
{
    bool seen[SHAPE_FIELDS_MAX] = {0};
    struct json_value key, v;

    assert(shape->n <= SHAPE_FIELDS_MAX);
    for (size_t at = 0; json_object_next(object, &at, &key, &v);) {
        size_t i = find_field(shape, key, s->lenient);

        if (i < shape->n) {
            seen[i] = v.type != JSON_NULL || !(shape->flags & SHAPE_NULLS);
            take_field(shape, &shape->fields[i], v, target, s);
        } else if (!s->lenient && !(shape->flags & SHAPE_OPEN)) {
            complain_unknown(s, shape, key);
        }
    }
    for (size_t i = 0; i < shape->n && !s->lenient; i++)
        if (shape->fields[i].flags & SHAPE_REQUIRED && !seen[i])
            shape_complain(s, shape->fields[i].name, NULL, "missing", "Field required");
}

int shape_value(const struct shape *shape, struct json_value v, const char *within, void *target,
                struct shaping *s)
{
    size_t before = s->issues_n;

    assert(s->depth < SHAPE_DEPTH_MAX);
    if (within)
        s->in[s->depth++] = within;
    if (v.type == JSON_OBJECT)
        take_object(shape, v, target, s);
    else if (!(s->lenient && v.type == JSON_NULL))
        shape_complain(s, NULL, NULL, within ? "dict_type" : "model_attributes_type",
                       within ? "Input should be a valid dictionary"
                              : "Input should be a valid dictionary or object to extract fields "
                                "from");
    if (within)
        s->depth--;
    return s->issues_n > before ? -1 : 0;
}

/* What the arena must hold: large texts have memory of their own. */
static size_t arena_room(const struct shape *shape, struct json_value body, bool any_case)
{
    struct json_value key, v;
    size_t room = body.n, at = 0;
    bool has_text = false;

    for (size_t i = 0; i < shape->n; i++)
        has_text |= shape->fields[i].type == SHAPE_TEXT;
    while (has_text && json_object_next(body, &at, &key, &v)) {
        size_t i = find_field(shape, key, any_case);

        if (i < shape->n && shape->fields[i].type == SHAPE_TEXT)
            room -= v.n;
    }
    return room;
}

int shape_parse(const struct shape *shape, const char *text, size_t n, void *target,
                struct shaping *s)
{
    struct json_value body;
    struct err e;

    if (json_parse(text, n, s->lenient ? LENIENT : 0, &body, &e) < 0) {
        shape_complain(s, NULL, NULL, "json_invalid", "JSON decode error: %.150s", e.text);
        return -1;
    }
    if (shaping_reserve(s, arena_room(shape, body, s->lenient)) < 0)
        return -1;
    return shape_value(shape, body, NULL, target, s);
}
