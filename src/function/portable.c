/* SPDX-License-Identifier: MIT */
#include "function/portable.h"

#include <string.h>

#include "base/jw.h"
#include "base/utf8.h"

enum { ALTERNATIVES_MAX = 16, WORD_MAX = 64 };

/* What is said of a value: its one type, and in words what else it may be. */
struct facts {
    struct json_value base; /* the alternative that counts */
    struct json_value type; /* a string; p == NULL: any */
    struct buf others;      /* ", string, number" */
    bool nullable;
};

static const struct json_value any_schema = {JSON_OBJECT, "{}", 2};

bool portable_name_is_good(const char *p, size_t n)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

    for (size_t i = 0; i < n; i++)
        if (!p[i] || !strchr(allowed, p[i]))
            return false;
    return n > 0 && n <= PORTABLE_NAME_MAX;
}

/* ---- one type ---- */

static bool is_null(struct json_value type)
{
    return type.p && type.type == JSON_STRING && json_key_is(type, "null");
}

static void note_other(struct facts *f, struct json_value type)
{
    if (type.p && type.type == JSON_STRING && type.n < WORD_MAX)
        (void)buf_printf(&f->others, ", %.*s", (int)type.n - 2, type.p + 1);
}

/* Of a list of types the first that is not null. */
static void take_types(struct facts *f, struct json_value type)
{
    struct json_value one;
    size_t at = 0;

    if (!type.p)
        return;
    if (type.type == JSON_STRING) {
        if (is_null(type))
            f->nullable = true;
        else
            f->type = type;
        return;
    }
    while (type.type == JSON_ARRAY && json_array_next(type, &at, &one))
        if (is_null(one))
            f->nullable = true;
        else if (!f->type.p && one.type == JSON_STRING)
            f->type = one;
        else
            note_other(f, one);
}

static struct json_value alternatives_of(struct json_value schema)
{
    struct json_value list = json_member(schema, "anyOf");

    if (!list.p)
        list = json_member(schema, "oneOf");
    return list.p && list.type == JSON_ARRAY ? list : (struct json_value){0};
}

/* Of alternatives the first that is not null; the others are named. */
static struct json_value choose(struct facts *f, struct json_value list)
{
    struct json_value one, chosen = any_schema;
    bool found = false;
    size_t at = 0;

    for (int n = 0; n < ALTERNATIVES_MAX && json_array_next(list, &at, &one); n++) {
        struct json_value type = json_member(one, "type");

        if (is_null(type)) {
            f->nullable = true;
        } else if (!found && one.type == JSON_OBJECT) {
            chosen = one;
            found = true;
        } else {
            note_other(f, type);
        }
    }
    return chosen;
}

static void facts_of(struct json_value schema, struct facts *f)
{
    struct json_value list, values, first = {0};
    size_t at = 0;

    *f = (struct facts){.base = schema, .others = BUF_INIT(PORTABLE_WORDS_MAX)};
    for (int n = 0; n < PORTABLE_DEPTH_MAX && (list = alternatives_of(f->base)).p; n++)
        f->base = choose(f, list);
    take_types(f, json_member(f->base, "type"));
    values = json_member(f->base, "enum");
    if (f->type.p || !values.p || values.type != JSON_ARRAY)
        return;
    while (json_array_next(values, &at, &first) && first.type == JSON_NULL)
        f->nullable = true;
    if (first.p && first.type == JSON_NUMBER)
        f->type = (struct json_value){JSON_STRING, "\"number\"", 8};
    else if (first.p && first.type == JSON_STRING)
        f->type = (struct json_value){JSON_STRING, "\"string\"", 8};
}

bool portable_is_nullable(struct json_value schema)
{
    struct facts f;

    facts_of(schema, &f);
    buf_done(&f.others);
    return f.nullable;
}

/* ---- writing ---- */

static void write_schema(struct jw *w, struct json_value schema, int depth);

static void copy_member(struct jw *w, struct json_value schema, const char *name)
{
    struct json_value v = json_member(schema, name);

    if (!v.p)
        return;
    jw_key(w, name);
    jw_raw(w, v.p, v.n);
}

/* Values that are no null: those of text and numbers alone are portable. */
static void write_enum(struct jw *w, struct json_value schema)
{
    struct json_value list = json_member(schema, "enum"), one;
    size_t at = 0;

    if (!list.p || list.type != JSON_ARRAY)
        return;
    jw_key(w, "enum");
    jw_array(w);
    while (json_array_next(list, &at, &one))
        if (one.type == JSON_STRING || one.type == JSON_NUMBER || one.type == JSON_BOOL)
            jw_raw(w, one.p, one.n);
    jw_array_end(w);
}

/* What its author wrote, then what the type does not say. */
static void write_description(struct jw *w, struct json_value schema, const struct facts *f)
{
    cleanup_with(buf_done) struct buf words = BUF_INIT(schema.n + 2 * PORTABLE_WORDS_MAX);
    struct json_value said = json_member(schema, "description");
    const char *gap = "";

    if (!said.p)
        said = json_member(f->base, "description");
    if (said.p && said.type == JSON_STRING &&
        json_decode_string(said, JSON_LENIENT_UTF8, &words) == 0 && words.n > 0) {
        words.n = utf8_truncate(words.p, words.n, PORTABLE_WORDS_MAX);
        gap = " ";
    }
    if (!f->type.p)
        (void)buf_printf(&words, "%s(any JSON value)", gap);
    else if (f->others.n > 2)
        (void)buf_printf(&words, "%s(or: %s)", gap, f->others.p + 2);
    if (words.n > 0)
        jw_kv_bytes(w, "description", words.p, words.n);
}

static bool key_is_good(struct json_value key)
{
    return portable_name_is_good(key.p + 1, key.n - 2);
}

/* False: a name was left out. */
static bool write_properties(struct jw *w, struct json_value properties, int depth)
{
    struct json_value key, v;
    bool whole = true;
    size_t at = 0;

    jw_key(w, "properties");
    jw_object(w);
    while (properties.p && properties.type == JSON_OBJECT &&
           json_object_next(properties, &at, &key, &v)) {
        if (!key_is_good(key)) {
            whole = false;
            continue;
        }
        jw_raw(w, key.p, key.n);
        (void)buf_putc(w->out, ':');
        w->comma = false;
        write_schema(w, v, depth + 1);
    }
    jw_object_end(w);
    return whole;
}

/* One that may be null need not be there. */
static void write_required(struct jw *w, struct json_value object, bool with_nullable)
{
    struct json_value list = json_member(object, "required"),
                      properties = json_member(object, "properties"), one, key, v;
    size_t at = 0;

    if (!list.p || list.type != JSON_ARRAY)
        return;
    jw_key(w, "required");
    jw_array(w);
    while (json_array_next(list, &at, &one)) {
        bool nullable = false;

        if (one.type != JSON_STRING || !key_is_good(one))
            continue;
        for (size_t in = 0; !with_nullable && properties.p && properties.type == JSON_OBJECT &&
                            json_object_next(properties, &in, &key, &v);)
            if (key.n == one.n && memcmp(key.p, one.p, one.n) == 0)
                nullable = portable_is_nullable(v);
        if (!nullable)
            jw_raw(w, one.p, one.n);
    }
    jw_array_end(w);
}

static void write_additional(struct jw *w, struct json_value object, bool open, int depth)
{
    struct json_value more = json_member(object, "additionalProperties");

    if (open) {
        jw_kv_bool(w, "additionalProperties", true);
    } else if (more.p && more.type == JSON_BOOL) {
        copy_member(w, object, "additionalProperties");
    } else if (more.p && more.type == JSON_OBJECT) {
        jw_key(w, "additionalProperties");
        write_schema(w, more, depth + 1);
    }
}

static void write_schema(struct jw *w, struct json_value schema, int depth)
{
    struct json_value items, properties, fallback = json_member(schema, "default");
    struct facts f;

    if (schema.type != JSON_OBJECT)
        schema = any_schema;
    if (depth > PORTABLE_DEPTH_MAX) {
        w->out->failed = true;
        return;
    }
    facts_of(schema, &f);
    jw_object(w);
    if (f.type.p) {
        jw_key(w, "type");
        jw_raw(w, f.type.p, f.type.n);
    }
    write_description(w, schema, &f);
    if (f.type.p && !json_key_is(f.type, "boolean"))
        write_enum(w, f.base);
    copy_member(w, f.base, "minimum");
    copy_member(w, f.base, "maximum");
    if (fallback.p) { /* not null */
        jw_key(w, "default");
        jw_raw(w, fallback.p, fallback.n);
    }
    if (f.type.p && json_key_is(f.type, "array")) {
        items = json_member(f.base, "items");
        jw_key(w, "items");
        if (items.p && items.type == JSON_OBJECT && items.n > 2)
            write_schema(w, items, depth + 1);
        else
            jw_raw(w, "{}", 2);
    }
    if (f.type.p && json_key_is(f.type, "object")) {
        properties = json_member(f.base, "properties");
        write_additional(w, f.base, properties.p && !write_properties(w, properties, depth), depth);
        write_required(w, f.base, true);
    }
    jw_object_end(w);
    buf_done(&f.others);
}

int portable_parameters(struct json_value parameters, struct buf *out, struct err *e)
{
    struct json_value properties = json_member(parameters, "properties"), key, v;
    struct buf text = BUF_INIT(PORTABLE_MAX);
    struct jw w = JW(&text);
    size_t at = 0;

    while (properties.p && properties.type == JSON_OBJECT &&
           json_object_next(properties, &at, &key, &v))
        if (!key_is_good(key))
            return err_set(e, ERR_CALLER,
                           "the parameter %.*s has a name that clients refuse: letters, digits, _ "
                           "and -, at most %d",
                           key.n < 80 ? (int)key.n : 80, key.p, PORTABLE_NAME_MAX);
    jw_object(&w);
    jw_kv_string(&w, "type", "object");
    (void)write_properties(&w, properties, 0);
    write_required(&w, parameters, false);
    write_additional(&w, parameters, false, 0);
    jw_object_end(&w);
    if (text.failed) {
        buf_done(&text);
        return err_set(e, ERR_CALLER, "its schema is longer than %d bytes or deeper than %d",
                       PORTABLE_MAX, PORTABLE_DEPTH_MAX);
    }
    (void)buf_put(out, text.p, text.n);
    buf_done(&text);
    return 0;
}
