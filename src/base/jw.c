/* SPDX-License-Identifier: MIT */
#include "base/jw.h"

#include <math.h>
#include <string.h>

#include "base/digits.h"
#include "base/json_inner.h"
#include "base/utf8.h"

/* Of fractions; with all their decimals, as an integer, they are exact. */
enum { BY_HAND_MAX = 1000000000, BY_HAND_DECIMALS = 6 };

static void comma(struct jw *w)
{
    if (w->comma)
        (void)buf_putc(w->out, ',');
    w->comma = true;
}

void jw_object(struct jw *w)
{
    comma(w);
    (void)buf_putc(w->out, '{');
    w->comma = false;
}

void jw_object_end(struct jw *w)
{
    (void)buf_putc(w->out, '}');
    w->comma = true;
}

void jw_array(struct jw *w)
{
    comma(w);
    (void)buf_putc(w->out, '[');
    w->comma = false;
}

void jw_array_end(struct jw *w)
{
    (void)buf_putc(w->out, ']');
    w->comma = true;
}

/* ---- strings ---- */

static void put_u(struct buf *out, unsigned unit)
{
    static const char hex[] = "0123456789abcdef";
    const char e[] = {
        '\\', 'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15]};

    (void)buf_put(out, e, sizeof e);
}

static void put_code_point(struct buf *out, uint32_t c)
{
    if (c < 0x10000) {
        put_u(out, c);
        return;
    }
    c -= 0x10000;
    put_u(out, 0xd800 | c >> 10);
    put_u(out, 0xdc00 | (c & 0x3ff));
}

static void put_ascii_escaped(struct buf *out, unsigned char c)
{
    static const char letters[128] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                      ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
    const char e[] = {'\\', letters[c]};

    if (letters[c])
        (void)buf_put(out, e, sizeof e);
    else
        put_u(out, c);
}

/* Characters of a plain run that Go's encoder escapes so that JSON can sit inside HTML. */
static bool html_special(unsigned char c)
{
    return c == '<' || c == '>' || c == '&';
}

/* How far the text can be copied as it is. */
static size_t copy_run(const struct jw *w, const char *p, size_t n)
{
    size_t run = json_plain_run(p, n);

    if (!w->html)
        return run;
    for (size_t i = 0; i < run; i++)
        if (html_special((unsigned char)p[i]))
            return i;
    return run;
}

/* Must this well-formed character beyond ASCII be escaped? */
static bool wide_special(const struct jw *w, const char *p, size_t length)
{
    if (w->ascii)
        return true;
    return w->html && length == 3 && (utf8_decode(p, length) | 1) == 0x2029;
}

static void put_special(struct jw *w, const char *p, size_t length, bool ok)
{
    if (ok && length == 1)
        put_ascii_escaped(w->out, (unsigned char)*p);
    else if (ok)
        put_code_point(w->out, utf8_decode(p, length));
    else if (w->html) /* Go's encoder: once per byte, and escaped */
        for (size_t i = 0; i < length; i++)
            put_u(w->out, 0xfffd);
    else if (w->ascii)
        put_u(w->out, 0xfffd);
    else
        (void)buf_puts(w->out, UTF8_REPLACEMENT);
}

/* There is room for it. */
static void put_plain(struct buf *out, const char *p, size_t n)
{
    char *at = out->p + out->n;

    *at++ = '"';
    memcpy(at, p, n);
    at[n] = '"';
    at[n + 1] = '\0';
    out->n += n + 2;
}

static void put_string(struct jw *w, const char *p, size_t n)
{
    struct buf *out = w->out;
    size_t run = 0, at;

    /* No character shrinks, so this much is needed in any case; mostly it is all. */
    if (out->failed || buf_reserve(out, n + 2) < 0)
        return;
    at = copy_run(w, p, n);
    if (at == n) {
        put_plain(out, p, n);
        return;
    }
    (void)buf_putc(out, '"');
    while (!out->failed) {
        size_t length;
        bool ok;

        at += copy_run(w, p + at, n - at);
        if (at == n)
            break;
        length = utf8_next(p + at, n - at, &ok);
        if (!ok || length == 1 || wide_special(w, p + at, length)) {
            (void)buf_put(out, p + run, at - run);
            put_special(w, p + at, length, ok);
            run = at + length;
        }
        at += length;
    }
    (void)buf_put(out, p + run, n - run);
    (void)buf_putc(out, '"');
}

/* ---- values ---- */

void jw_key(struct jw *w, const char *key)
{
    comma(w);
    put_string(w, key, strlen(key));
    (void)buf_putc(w->out, ':');
    w->comma = false;
}

void jw_bytes(struct jw *w, const char *p, size_t n)
{
    comma(w);
    put_string(w, p, n);
}

void jw_string(struct jw *w, const char *s)
{
    jw_bytes(w, s, strlen(s));
}

void jw_int(struct jw *w, int64_t v)
{
    char digits[DIGITS_MAX + 1], *end = digits + sizeof digits;
    char *p = digits_before(end, v < 0 ? -(uint64_t)v : (uint64_t)v, 1);

    if (v < 0)
        *--p = '-';
    comma(w);
    (void)buf_put(w->out, p, (size_t)(end - p));
}

/* v is neither negative nor large, and has a few decimals. */
static void put_fraction(struct jw *w, double v, int decimals)
{
    char digits[2 * DIGITS_MAX], *end = digits + sizeof digits, *p = end;
    uint64_t unit = 1, all;

    for (int i = 0; i < decimals; i++)
        unit *= 10;
    all = (uint64_t)(v * (double)unit + 0.5);
    if (decimals > 0) {
        p = digits_before(p, all % unit, decimals);
        *--p = '.';
    }
    p = digits_before(p, all / unit, 1);
    (void)buf_put(w->out, p, (size_t)(end - p));
}

void jw_double(struct jw *w, double v, int decimals)
{
    comma(w);
    if (v >= 0 && v < BY_HAND_MAX && decimals <= BY_HAND_DECIMALS)
        put_fraction(w, v, decimals);
    else if (isfinite(v))
        (void)buf_printf(w->out, "%.*f", decimals, v);
    else
        (void)buf_puts(w->out, "null");
}

void jw_bool(struct jw *w, bool v)
{
    comma(w);
    (void)buf_puts(w->out, v ? "true" : "false");
}

void jw_null(struct jw *w)
{
    comma(w);
    (void)buf_puts(w->out, "null");
}

void jw_raw(struct jw *w, const char *p, size_t n)
{
    comma(w);
    (void)buf_put(w->out, p, n);
}

void jw_kv_string(struct jw *w, const char *key, const char *s)
{
    jw_key(w, key);
    if (s)
        jw_string(w, s);
    else
        jw_null(w);
}

void jw_kv_bytes(struct jw *w, const char *key, const char *p, size_t n)
{
    jw_key(w, key);
    jw_bytes(w, p, n);
}

void jw_kv_int(struct jw *w, const char *key, int64_t v)
{
    jw_key(w, key);
    jw_int(w, v);
}

void jw_kv_double(struct jw *w, const char *key, double v, int decimals)
{
    jw_key(w, key);
    jw_double(w, v, decimals);
}

void jw_kv_bool(struct jw *w, const char *key, bool v)
{
    jw_key(w, key);
    jw_bool(w, v);
}
