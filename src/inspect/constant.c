/* SPDX-License-Identifier: MIT */
/* Default values that are plain data, said in JSON. Anything with a name, a call or an
 * interpolation in it is not a literal, and then nothing is said. */
#include <ctype.h>
#include <string.h>

#include "base/jw.h"
#include "base/utf8.h"
#include "inspect/schema.h"

struct reader {
    enum dialect d;
    const char *p, *end;
    unsigned depth;
    struct buf *out;
};

static bool read_value(struct reader *r);

static void skip(struct reader *r)
{
    while (r->p < r->end && isspace((unsigned char)*r->p))
        r->p++;
}

static bool take(struct reader *r, const char *text)
{
    size_t n = strlen(text);

    skip(r);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, text, n) != 0)
        return false;
    r->p += n;
    return true;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* ---- words ---- */

static bool read_word(struct reader *r)
{
    static const struct {
        const char *word, *json;
    } words[] = {
        {"true",  "true" },
        {"True",  "true" },
        {"TRUE",  "true" },
        {"false", "false"},
        {"False", "false"},
        {"FALSE", "false"},
        {"null",  "null" },
        {"NULL",  "null" },
        {"None",  "null" },
        {"nil",   "null" },
    };
    const char *from = r->p;

    while (r->p < r->end && is_word(*r->p))
        r->p++;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (slice_is((struct slice){from, (size_t)(r->p - from)}, words[i].word))
            return buf_puts(r->out, words[i].json) == 0;
    return false;
}

/* ---- numbers ---- */

static unsigned digit_value(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : tolower(c) - 'a' + 10);
}

/* 10UL, 1.5f, 3n */
static void skip_suffix(struct reader *r)
{
    if (r->d == DIALECT_C || r->d == DIALECT_CPP || r->d == DIALECT_JAVASCRIPT)
        while (r->p < r->end && strchr("uUlLfFn", *r->p) && *r->p)
            r->p++;
}

static bool read_hex(struct reader *r)
{
    unsigned long long v = 0;
    size_t digits = 0;

    for (r->p += 2; r->p < r->end && (isxdigit((unsigned char)*r->p) || *r->p == '_'); r->p++) {
        if (*r->p == '_')
            continue;
        if (++digits > 15)
            return false;
        v = v * 16 + digit_value(*r->p);
    }
    skip_suffix(r);
    return digits > 0 && buf_printf(r->out, "%llu", v) == 0;
}

static void read_digits(struct reader *r, size_t *n)
{
    for (; r->p < r->end && (isdigit((unsigned char)*r->p) || *r->p == '_' || *r->p == '\'');
         r->p++)
        if (isdigit((unsigned char)*r->p)) {
            (void)buf_putc(r->out, *r->p);
            ++*n;
        }
}

/* The digits travel as they are: JSON has no limit, and a reader may want all of them. */
static bool read_decimal(struct reader *r)
{
    size_t whole = 0, part = 0, power = 0;

    if (r->p < r->end && *r->p == '.')
        (void)buf_putc(r->out, '0'), whole++;
    else
        read_digits(r, &whole);
    if (r->p < r->end && *r->p == '.') {
        r->p++;
        (void)buf_putc(r->out, '.');
        read_digits(r, &part);
        if (part == 0)
            (void)buf_putc(r->out, '0');
    }
    if (r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
        (void)buf_putc(r->out, *r->p++);
        if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
            (void)buf_putc(r->out, *r->p++);
        read_digits(r, &power);
        if (power == 0)
            return false;
    }
    skip_suffix(r);
    return whole + part > 0;
}

static bool read_number(struct reader *r)
{
    if (r->end - r->p > 2 && r->p[0] == '0' && (r->p[1] == 'x' || r->p[1] == 'X'))
        return read_hex(r);
    if (r->end - r->p > 1 && r->p[0] == '0' && (isalnum((unsigned char)r->p[1]) || r->p[1] == '_'))
        return r->p[1] == 'e' || r->p[1] == 'E' ? read_decimal(r) : false; /* octal, binary */
    return read_decimal(r);
}

/* ---- strings ---- */

static bool read_code_point(struct reader *r, size_t digits, struct buf *text)
{
    uint32_t c = 0;
    bool braces = digits == 4 && r->p < r->end && *r->p == '{';
    char utf8[4];
    size_t n = 0, max = braces ? 6 : digits;

    if (braces)
        r->p++;
    for (; n < max && r->p < r->end && isxdigit((unsigned char)*r->p); n++, r->p++)
        c = c * 16 + digit_value(*r->p);
    if (n == 0 || (!braces && n != max) || (braces && !(r->p < r->end && *r->p++ == '}')))
        return false;
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || (digits == 2 && c > 0x7f))
        return false;
    return buf_put(text, utf8, utf8_encode(c, utf8)) == 0;
}

static bool read_escape(struct reader *r, bool plain, struct buf *text)
{
    static const char from[] = "nrtbfv0\\'\"`/$#", to[] = "\n\r\t\b\f\v\0\\'\"`/$#";
    char c = *r->p++;
    const char *hit;

    if (plain) { /* single quotes of Ruby and PHP */
        if (c != '\\' && c != '\'')
            (void)buf_putc(text, '\\');
        return buf_putc(text, c) == 0;
    }
    if (c == 'x')
        return read_code_point(r, 2, text);
    if (c == 'u')
        return read_code_point(r, 4, text);
    hit = c ? strchr(from, c) : NULL;
    if (!hit || (c == '0' && r->p < r->end && isdigit((unsigned char)*r->p)))
        return false;
    return buf_putc(text, to[hit - from]) == 0;
}

static bool interpolates(const struct reader *r, char quote)
{
    bool hash = r->d == DIALECT_RUBY && quote == '"', dollar = r->d == DIALECT_PHP && quote == '"';

    return (hash && r->p[0] == '#' && r->p + 1 < r->end && r->p[1] == '{') ||
           (dollar && r->p[0] == '$') || (quote == '`' && r->p[0] == '$');
}

static bool read_text(struct reader *r, struct buf *text)
{
    char quote = *r->p++;
    bool plain = quote == '\'' && (r->d == DIALECT_RUBY || r->d == DIALECT_PHP);

    if (r->end - r->p >= 2 && r->p[0] == quote && r->p[1] == quote)
        return false; /* three quotes */
    while (r->p < r->end && *r->p != quote) {
        if (interpolates(r, quote))
            return false;
        if (*r->p == '\\' && r->p + 1 < r->end) {
            r->p++;
            if (!read_escape(r, plain, text))
                return false;
        } else {
            (void)buf_putc(text, *r->p++);
        }
    }
    return r->p < r->end && *r->p++ == quote;
}

static bool read_string(struct reader *r)
{
    struct buf text = BUF_INIT(INSPECT_TEXT_MAX);
    struct jw w = JW(r->out);
    bool ok = read_text(r, &text) && !text.failed;

    if (ok)
        jw_bytes(&w, text.p ? text.p : "", text.n);
    buf_done(&text);
    return ok;
}

/* ---- lists and maps ---- */

static bool read_key(struct reader *r)
{
    struct jw w = JW(r->out);
    const char *from;

    skip(r);
    if (r->p < r->end && (*r->p == '"' || *r->p == '\''))
        return read_string(r);
    from = r->p;
    while (r->p < r->end && is_word(*r->p))
        r->p++;
    if (r->p == from || r->d == DIALECT_PYTHON)
        return false;
    jw_bytes(&w, from, (size_t)(r->p - from));
    return true;
}

/* Values up to `close`, each behind its key or none of them. */
static bool read_members(struct reader *r, const char *close, bool keys)
{
    (void)buf_putc(r->out, keys ? '{' : '[');
    for (bool any = false; !take(r, close); any = true) {
        if (any && !take(r, ","))
            return false;
        if (any && take(r, close))
            break;
        if (any)
            (void)buf_putc(r->out, ',');
        if (keys && (!read_key(r) || !(take(r, "=>") || take(r, ":")) || buf_putc(r->out, ':') < 0))
            return false;
        if (!read_value(r))
            return false;
    }
    return buf_putc(r->out, keys ? '}' : ']') == 0;
}

/* ["a" => 1] of PHP: looked for, not tried, because trying again at every level doubles the work
 * at every level. */
static bool has_keys(struct reader *r)
{
    const char *from = r->p;
    size_t begin = r->out->n;
    bool keys = read_key(r) && take(r, "=>");

    r->p = from;
    if (!r->out->failed)
        r->out->n = begin;
    return keys;
}

static bool read_group(struct reader *r)
{
    if (take(r, "{"))
        return r->d != DIALECT_C && r->d != DIALECT_CPP && read_members(r, "}", true);
    if (take(r, "("))
        return r->d == DIALECT_PYTHON && read_members(r, ")", false);
    if (!take(r, "["))
        return false;
    return read_members(r, "]", r->d == DIALECT_PHP && has_keys(r));
}

static bool read_value(struct reader *r)
{
    bool ok;

    skip(r);
    if (r->p == r->end || ++r->depth > INSPECT_DEPTH_MAX)
        return false;
    if (*r->p == '-' && r->p + 1 < r->end && (isdigit((unsigned char)r->p[1]) || r->p[1] == '.')) {
        r->p++;
        (void)buf_putc(r->out, '-');
    }
    if (isdigit((unsigned char)*r->p) || *r->p == '.')
        ok = read_number(r);
    else if (*r->p == '"' || *r->p == '\'' || (*r->p == '`' && r->d == DIALECT_JAVASCRIPT))
        ok = read_string(r);
    else if (strchr("[{(", *r->p) && *r->p)
        ok = read_group(r);
    else
        ok = read_word(r);
    r->depth--;
    return ok;
}

bool literal_to_json(enum dialect d, struct slice text, struct buf *out)
{
    struct reader r = {.d = d, .p = text.p, .out = out};
    size_t begin = out->n;

    if (!text.p || text.n > INSPECT_TEXT_MAX)
        return false;
    r.end = text.p + text.n;
    if ((d == DIALECT_C || d == DIALECT_CPP) && text.n > 0 && text.p[0] == '\'')
        return false; /* a character is a number whose value depends on the compiler */
    if (read_value(&r)) {
        skip(&r);
        if (r.p == r.end && !out->failed)
            return true;
    }
    if (!out->failed)
        out->n = begin;
    return false;
}
