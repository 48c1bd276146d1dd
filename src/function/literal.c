/* SPDX-License-Identifier: MIT */
#include "function/literal.h"

#include <stdint.h>
#include <string.h>

static unsigned hex4(const char *p)
{
    unsigned v = 0;

    for (int i = 0; i < 4; i++)
        v = v * 16 + (unsigned)(p[i] <= '9' ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
    return v;
}

static void put_plain(const struct language_literals *s, unsigned char c, struct buf *out)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *at = c ? memchr(values, c, sizeof values - 1) : NULL;

    if (at && strchr(s->controls, names[at - values])) {
        (void)buf_putc(out, '\\');
        (void)buf_putc(out, names[at - values]);
    } else if (c < 0x20 || c == 0x7f) {
        (void)(s->control_u ? buf_printf(out, "\\u%04x", c) : buf_printf(out, "\\x%02x", c));
    } else {
        if (c == '"' || c == '\\' || (c < 0x80 && strchr(s->expanded, c) && *s->expanded))
            (void)buf_putc(out, '\\');
        (void)buf_putc(out, (char)c);
    }
}

static void put_code_point(const struct language_literals *s, uint32_t c, struct buf *out)
{
    char bytes[4];
    size_t n = 0;

    if (c < 0x80) {
        put_plain(s, (unsigned char)c, out);
        return;
    }
    if (c >= 0xd800 && c < 0xe000) { /* half a pair: only where a language can have it */
        (void)buf_printf(out, "\\u%04x", (unsigned)c);
        return;
    }
    if (c < 0x800) {
        bytes[n++] = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        bytes[n++] = (char)(0xe0 | c >> 12);
        bytes[n++] = (char)(0x80 | (c >> 6 & 63));
    } else {
        bytes[n++] = (char)(0xf0 | c >> 18);
        bytes[n++] = (char)(0x80 | (c >> 12 & 63));
        bytes[n++] = (char)(0x80 | (c >> 6 & 63));
    }
    bytes[n++] = (char)(0x80 | (c & 63));
    (void)buf_put(out, bytes, n);
}

/* p is behind a backslash; returns how many bytes the escape has. */
static size_t put_escape(const struct language_literals *s, const char *p, size_t n,
                         struct buf *out)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *at = strchr(names, p[0]);
    uint32_t c;

    if (p[0] != 'u') {
        put_plain(s, (unsigned char)(at ? values[at - names] : p[0]), out);
        return 1;
    }
    c = hex4(p + 1);
    if (c >= 0xd800 && c < 0xdc00 && n >= 11 && p[5] == '\\' && p[6] == 'u') {
        uint32_t low = hex4(p + 7);

        if (low >= 0xdc00 && low < 0xe000) {
            put_code_point(s, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00), out);
            return 11;
        }
    }
    put_code_point(s, c, out);
    return 5;
}

static void put_string(const struct language_literals *s, struct json_value v, struct buf *out)
{
    (void)buf_putc(out, '"');
    for (size_t i = 1; i + 1 < v.n;) {
        if (v.p[i] == '\\') {
            i += 1 + put_escape(s, v.p + i + 1, v.n - i - 2, out);
        } else {
            put_plain(s, (unsigned char)v.p[i], out);
            i++;
        }
    }
    (void)buf_putc(out, '"');
}

static int put(const struct language_literals *s, struct json_value v, int depth, struct buf *out);

static int put_array(const struct language_literals *s, struct json_value v, int depth,
                     struct buf *out)
{
    struct json_value item;
    size_t at = 0;

    (void)buf_putc(out, '[');
    for (bool first = true; json_array_next(v, &at, &item); first = false) {
        if (!first)
            (void)buf_puts(out, ", ");
        if (put(s, item, depth + 1, out) < 0)
            return -1;
    }
    return buf_putc(out, ']');
}

static int put_object(const struct language_literals *s, struct json_value v, int depth,
                      struct buf *out)
{
    struct json_value key, item;
    size_t at = 0;

    (void)buf_puts(out, s->open);
    for (bool first = true; json_object_next(v, &at, &key, &item); first = false) {
        bool computed = s->computed_proto && json_key_is(key, "__proto__");

        if (!first)
            (void)buf_puts(out, ", ");
        if (computed)
            (void)buf_putc(out, '[');
        put_string(s, key, out);
        if (computed)
            (void)buf_putc(out, ']');
        (void)buf_puts(out, s->arrow);
        if (put(s, item, depth + 1, out) < 0)
            return -1;
    }
    return buf_puts(out, s->close);
}

static int put_number(const struct language_literals *s, struct json_value v, struct buf *out)
{
    static const char least[] = "-9223372036854775808";

    if (s->least && v.n == sizeof least - 1 && memcmp(v.p, least, v.n) == 0)
        return buf_puts(out, s->least);
    return v.n > LITERAL_DIGITS_MAX ? -1 : buf_put(out, v.p, v.n);
}

static int put(const struct language_literals *s, struct json_value v, int depth, struct buf *out)
{
    if (depth > LITERAL_DEPTH_MAX)
        return -1;
    switch (v.type) {
    case JSON_NULL:
        return buf_puts(out, s->null);
    case JSON_BOOL:
        return buf_puts(out, v.p[0] == 't' ? s->yes : s->no);
    case JSON_NUMBER:
        return put_number(s, v, out);
    case JSON_STRING:
        put_string(s, v, out);
        return out->failed ? -1 : 0;
    case JSON_ARRAY:
        return put_array(s, v, depth, out);
    case JSON_OBJECT:
        return put_object(s, v, depth, out);
    }
    return -1;
}

int literal_put(enum call_lang_id lang, struct json_value v, struct buf *out)
{
    const struct language_literals *s = &call_lang(lang)->literals;

    if (!s->null)
        return -1;
    return put(s, v, 0, out) < 0 || out->failed ? -1 : 0;
}
