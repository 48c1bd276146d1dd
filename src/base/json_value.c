/* SPDX-License-Identifier: MIT */
/* Walking and decoding text that json_parse() has proved well formed. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_inner.h"
#include "base/utf8.h"

/* ---- characters of a validated string ---- */

/* Yields code points of a string's inside, escapes resolved. Lone surrogates come as they are. */
struct chars {
    const char *p, *end;
    bool plain; /* not JSON: a backslash is a backslash */
};

static struct chars chars_of(struct json_value string)
{
    return (struct chars){.p = string.p + 1, .end = string.p + string.n - 1};
}

static uint32_t hex4(const char *p)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++)
        v = v << 4 | (uint32_t)json_hex(p[i]);
    return v;
}

static bool is_surrogate(uint32_t c)
{
    return c >= 0xd800 && c <= 0xdfff;
}

static uint32_t chars_escape(struct chars *c)
{
    static const char letters[128] = {
        ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    char letter = c->p[1];
    uint32_t high, low;

    c->p += 2;
    if (letter != 'u')
        return (unsigned char)(letters[(int)letter] ? letters[(int)letter] : letter);
    high = hex4(c->p);
    c->p += 4;
    if (high < 0xd800 || high > 0xdbff || c->end - c->p < 6 || c->p[0] != '\\' || c->p[1] != 'u')
        return high;
    low = hex4(c->p + 2);
    if (low < 0xdc00 || low > 0xdfff)
        return high;
    c->p += 6;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* False at the end. */
static bool chars_next(struct chars *c, uint32_t *ret)
{
    size_t length;
    bool ok;

    if (c->p == c->end)
        return false;
    if (*c->p == '\\' && !c->plain) {
        *ret = chars_escape(c);
        return true;
    }
    length = utf8_next(c->p, (size_t)(c->end - c->p), &ok);
    *ret = ok ? utf8_decode(c->p, length) : 0xfffd;
    c->p += length;
    return true;
}

/* Plain characters need no decoding to be found equal. */
static void skip_equal(struct chars *a, struct chars *b)
{
    while (a->p < a->end && b->p < b->end && *a->p == *b->p &&
           json_is_plain((unsigned char)*a->p)) {
        a->p++;
        b->p++;
    }
}

static int chars_compare(struct chars a, struct chars b)
{
    skip_equal(&a, &b);
    for (;;) {
        uint32_t x = 0, y = 0;
        bool more_a = chars_next(&a, &x), more_b = chars_next(&b, &y);

        if (!more_a || !more_b)
            return more_a - more_b;
        if (x != y)
            return x < y ? -1 : 1;
    }
}

/* ---- walking validated text ---- */

static const char *skip_string(const char *p, const char *end)
{
    for (p++;; p += 2) {
        p += json_quote_run(p, (size_t)(end - p));
        if (*p == '"')
            return p + 1;
    }
}

static const char *skip_container(const char *p, const char *end)
{
    unsigned depth = 0;

    do {
        if (*p == '"') {
            p = skip_string(p, end);
            continue;
        }
        if (*p == '{' || *p == '[')
            depth++;
        if (*p == '}' || *p == ']')
            depth--;
        p++;
    } while (depth > 0);
    return p;
}

static const char *skip_scalar(const char *p, const char *end)
{
    while (p < end && !json_is_space(*p) && *p != ',' && *p != '}' && *p != ']')
        p++;
    return p;
}

/* The value at p, after white space. Returns what follows it. */
static const char *take_value(const char *p, const char *end, struct json_value *ret)
{
    const char *after;

    p = json_skip_space(p, end);
    ret->type = json_type_of(*p);
    ret->p = p;
    if (ret->type == JSON_STRING)
        after = skip_string(p, end);
    else if (ret->type == JSON_OBJECT || ret->type == JSON_ARRAY)
        after = skip_container(p, end);
    else
        after = skip_scalar(p, end);
    ret->n = (size_t)(after - p);
    return after;
}

/* The start of the next member, or NULL. *at is the position of '{', '[', ',' or of the end. */
static const char *next_member(struct json_value v, size_t at)
{
    const char *end = v.p + v.n - 1; /* the closing bracket */
    const char *p = json_skip_space(v.p + at, end);

    if (p >= end)
        return NULL;
    p = json_skip_space(p + 1, end);
    return p < end ? p : NULL;
}

bool json_object_next(struct json_value object, size_t *at, struct json_value *ret_key,
                      struct json_value *ret_value)
{
    const char *end = object.p + object.n;
    const char *p = object.type == JSON_OBJECT ? next_member(object, *at) : NULL;

    if (!p)
        return false;
    p = take_value(p, end, ret_key);
    p = json_skip_space(p, end) + 1; /* the colon */
    p = take_value(p, end, ret_value);
    *at = (size_t)(p - object.p);
    return true;
}

bool json_array_next(struct json_value array, size_t *at, struct json_value *ret_item)
{
    const char *p = array.type == JSON_ARRAY ? next_member(array, *at) : NULL;

    if (!p)
        return false;
    p = take_value(p, array.p + array.n, ret_item);
    *at = (size_t)(p - array.p);
    return true;
}

bool json_key_is(struct json_value key, const char *name)
{
    struct chars plain = {.p = name, .end = name + strlen(name), .plain = true};

    if (key.p[1] != *name && key.p[1] != '\\' && key.p[1] != '"') /* as nearly always */
        return false;
    return chars_compare(chars_of(key), plain) == 0;
}

bool json_get(struct json_value object, const char *name, struct json_value *ret)
{
    struct json_value key, value;
    bool found = false;

    for (size_t at = 0; json_object_next(object, &at, &key, &value);) {
        if (!json_key_is(key, name))
            continue;
        *ret = value;
        found = true;
    }
    return found;
}

struct json_value json_member(struct json_value object, const char *name)
{
    struct json_value v;

    if (!object.p || object.type != JSON_OBJECT || !json_get(object, name, &v) ||
        v.type == JSON_NULL)
        return (struct json_value){0};
    return v;
}

/* ---- duplicate keys ---- */

enum { KEYS_FEW = 24 }; /* up to here comparing each with each is cheaper than allocating */

static int key_order(const void *a, const void *b)
{
    const struct json_value *x = a, *y = b;

    return chars_compare(chars_of(*x), chars_of(*y));
}

/* Sorting keeps the work at n log n whatever keys a hostile client chooses. */
static int duplicate_of_many(struct json_value object, size_t n, struct json_value *ret_key)
{
    cleanup_free struct json_value *keys = calloc(n, sizeof *keys);
    struct json_value value;
    size_t at = 0;

    if (!keys)
        return -1;
    for (size_t i = 0; i < n; i++)
        (void)json_object_next(object, &at, &keys[i], &value);
    qsort(keys, n, sizeof *keys, key_order);
    for (size_t i = 1; i < n; i++) {
        if (key_order(&keys[i - 1], &keys[i]) != 0)
            continue;
        *ret_key = keys[i].p > keys[i - 1].p ? keys[i] : keys[i - 1];
        return 1;
    }
    return 0;
}

int json_duplicate_key(struct json_value object, struct json_value *ret_key)
{
    struct json_value few[KEYS_FEW], key, value;
    size_t n = 0;

    for (size_t at = 0; json_object_next(object, &at, &key, &value); n++) {
        if (n >= KEYS_FEW)
            continue; /* only counted */
        for (size_t i = 0; i < n; i++) {
            if (key_order(&few[i], &key) != 0)
                continue;
            *ret_key = key;
            return 1;
        }
        few[n] = key;
    }
    return n <= KEYS_FEW ? 0 : duplicate_of_many(object, n, ret_key);
}

/* ---- decoding ---- */

/* Bytes from p on that decode to themselves. Bad UTF-8 never does. */
static size_t literal_run(const char *p, const char *end)
{
    const char *at = p;

    while (at < end) {
        size_t length;
        bool ok;

        at += json_plain_run(at, (size_t)(end - at));
        if (at == end || *at == '\\')
            break;
        length = utf8_next(at, (size_t)(end - at), &ok);
        if (!ok)
            break;
        at += length;
    }
    return (size_t)(at - p);
}

int json_decode_string(struct json_value v, unsigned flags, struct buf *out)
{
    struct chars c = chars_of(v);
    size_t before = out->n;

    while (c.p < c.end) {
        size_t run = literal_run(c.p, c.end);
        char utf8[4];
        uint32_t point;

        if (buf_put(out, c.p, run) < 0)
            return -1;
        c.p += run;
        if (!chars_next(&c, &point))
            break;
        if (is_surrogate(point) && !(flags & JSON_LENIENT_UTF8)) {
            out->n = before;
            out->p[before] = '\0';
            return -1;
        }
        if (buf_put(out, utf8, utf8_encode(point, utf8)) < 0)
            return -1;
    }
    return buf_put(out, "", 0); /* so that even an empty string is a C string */
}
