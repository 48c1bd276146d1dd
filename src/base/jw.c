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

enum {
    WORD = sizeof(uint64_t), /* text is looked at so many bytes at a time */
    UNIT = 6,                /* bytes of \uXXXX */
    WIDE_ROOM = 3 * UNIT,    /* the most that one character or one bad part becomes */
    PIECE = 2048,            /* bytes that are encoded before they are added to the buffer */
};

/* What becomes of a byte: 0 for a copy, the letter of a short escape, or one of these. */
enum { AS_UNIT = 1, IF_HTML, LEAD, BAD };

/* clang-format off */
static const unsigned char fates[256] = {
    [0x00 ... 0x07] = AS_UNIT, [0x0b] = AS_UNIT, [0x0e ... 0x1f] = AS_UNIT,
    ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\',
    ['<'] = IF_HTML, ['>'] = IF_HTML, ['&'] = IF_HTML,
    [0x80 ... 0xc1] = BAD, [0xc2 ... 0xf4] = LEAD, [0xf5 ... 0xff] = BAD,
};
/* clang-format on */

/* Are these eight bytes copied? Go's encoder also escapes < > & so that JSON can sit inside HTML;
 * '<' and '>' differ in one bit. */
static inline bool html_word_is_copied(const char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof word);
    return json_word_is_plain(p) && !(json_word_has(word | JSON_EACH((uint64_t)('<' ^ '>')), '>') |
                                      json_word_has(word, '&'));
}

static bool byte_is_copied(const struct jw *w, unsigned char c)
{
    return fates[c] == 0 || (fates[c] == IF_HTML && !w->html);
}

/* How far the text can be copied as it is. */
static size_t copy_run(const struct jw *w, const char *p, size_t n)
{
    size_t i = 0;

    if (!w->html)
        return json_plain_run(p, n);
    while (n - i >= WORD && html_word_is_copied(p + i))
        i += WORD;
    while (i < n && byte_is_copied(w, (unsigned char)p[i]))
        i++;
    return i;
}

static char *put_unit(char *to, unsigned unit)
{
    static const char hex[] = "0123456789abcdef";

    *to++ = '\\';
    *to++ = 'u';
    *to++ = hex[unit >> 12 & 15];
    *to++ = hex[unit >> 8 & 15];
    *to++ = hex[unit >> 4 & 15];
    *to++ = hex[unit & 15];
    return to;
}

/* For one bad part. */
static char *put_bad(const struct jw *w, char *to)
{
    if (w->html || w->ascii)
        return mempcpy(to, "\\ufffd", UNIT);
    return mempcpy(to, UTF8_REPLACEMENT, sizeof UTF8_REPLACEMENT - 1);
}

static char *put_code_point(char *to, uint32_t c)
{
    if (c < 0x10000)
        return put_unit(to, c);
    c -= 0x10000;
    return put_unit(put_unit(to, 0xd800 | c >> 10), 0xdc00 | (c & 0x3ff));
}

/* Must this well-formed character beyond ASCII be escaped? */
static bool wide_special(const struct jw *w, const char *p, size_t length)
{
    if (w->ascii)
        return true;
    return w->html && length == 3 && (utf8_decode(p, length) | 1) == 0x2029;
}

/* The same with the characters beyond ASCII that are not escaped. `most`: about where to stop; a
 * character is not cut there. */
static size_t copy_run_wide(const struct jw *w, const char *p, size_t n, size_t most)
{
    size_t end = n < most ? n : most, i = 0, length;
    bool ok;

    for (;;) {
        i += i < end ? copy_run(w, p + i, end - i) : 0;
        if (i >= end || fates[(unsigned char)p[i]] != LEAD)
            return i;
        length = utf8_next(p + i, n - i, &ok);
        if (!ok || wide_special(w, p + i, length))
            return i;
        i += length;
    }
}

/* At a lead byte: a character beyond ASCII, or a bad part that begins like one. How long it is. */
static size_t put_wide(const struct jw *w, const char *p, size_t n, char **to)
{
    bool ok;
    size_t length = utf8_next(p, n, &ok);

    if (ok && wide_special(w, p, length))
        *to = put_code_point(*to, utf8_decode(p, length));
    else if (ok)
        *to = mempcpy(*to, p, length);
    else
        for (size_t i = 0; i < (w->html ? length : 1); i++) /* Go's encoder: once per byte */
            *to = put_bad(w, *to);
    return length;
}

/* One character or one bad part. How long it is. */
static size_t put_one(const struct jw *w, const char *p, size_t n, char **to)
{
    const unsigned char c = (unsigned char)*p;
    const unsigned char fate = fates[c];

    if (fate == LEAD)
        return put_wide(w, p, n, to);
    if (fate == BAD) {
        *to = put_bad(w, *to);
    } else if (byte_is_copied(w, c)) {
        *(*to)++ = *p;
    } else if (fate == AS_UNIT || fate == IF_HTML) {
        *to = put_unit(*to, c);
    } else {
        *(*to)++ = '\\';
        *(*to)++ = (char)fate;
    }
    return 1;
}

/* As much of the text as fits into a piece. How much that is. */
static size_t put_piece(const struct jw *w, const char *p, size_t n)
{
    char piece[PIECE + WIDE_ROOM], *to = piece, *const full = piece + PIECE;
    size_t i = 0;

    while (i < n && to < full) {
        size_t run = copy_run_wide(w, p + i, n - i, (size_t)(full - to));

        to = mempcpy(to, p + i, run);
        i += run;
        while (i < n && to < full && fates[(unsigned char)p[i]] != 0)
            i += put_one(w, p + i, n - i, &to);
    }
    (void)buf_put(w->out, piece, (size_t)(to - piece));
    return i;
}

/* There is room for it. */
static void put_plain(struct buf *out, const char *p, size_t n)
{
    char *at = out->p + out->n;

    *at++ = '"';
    if (n > 0) /* an empty text may have no address */
        memcpy(at, p, n);
    at[n] = '"';
    at[n + 1] = '\0';
    out->n += n + 2;
}

static void put_string(struct jw *w, const char *p, size_t n)
{
    struct buf *out = w->out;
    size_t at;

    /* No character shrinks, so this much is needed in any case; mostly it is all. */
    if (out->failed || buf_reserve(out, n + 2) < 0)
        return;
    at = copy_run(w, p, n);
    if (at == n) {
        put_plain(out, p, n);
        return;
    }
    (void)buf_putc(out, '"');
    (void)buf_put(out, p, at);
    while (at < n && !out->failed)
        at += put_piece(w, p + at, n - at);
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
