/* SPDX-License-Identifier: MIT */
/*
 * Scanning happens once, in json_parse(): it proves the whole text well formed without recursion.
 * A stack of bits remembers what each open bracket was. Everything after that (iteration, lookup,
 * decoding: json_value.c) walks text that is known to be good and needs no checks of its own.
 */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#include "base/json_inner.h"
#include "base/utf8.h"

struct scan {
    const char *begin, *p, *end;
    unsigned flags;
    unsigned depth;
    unsigned char is_object[JSON_DEPTH_MAX / 8]; /* a bit per open bracket */
    struct err *e;
};

const char *json_type_name(enum json_type t)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",     [JSON_BOOL] = "boolean", [JSON_NUMBER] = "number",
        [JSON_STRING] = "string", [JSON_ARRAY] = "array",  [JSON_OBJECT] = "object",
    };

    return names[t];
}

/* ---- helpers of the scanner ---- */

/* Columns count characters, as an editor shows them. */
static int fail_at(struct scan *s, const char *where, const char *what)
{
    size_t line = 1, column = 1;

    for (const char *p = s->begin; p < where; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) {
            column++;
        }
    }
    return err_set(s->e, ERR_CALLER, "invalid JSON at line %zu, column %zu: %s", line, column,
                   what);
}

static int fail(struct scan *s, const char *what)
{
    return fail_at(s, s->p, s->p == s->end ? "unexpected end" : what);
}

/* The next character that is no white space, or NUL at the end. A NUL in the text fits nowhere
 * either, so the two need not be told apart. */
static char peek(struct scan *s)
{
    s->p = json_skip_space(s->p, s->end);
    return s->p < s->end ? *s->p : '\0';
}

/* ---- tokens ---- */

/* At a backslash. */
static int scan_escape(struct scan *s)
{
    size_t left = (size_t)(s->end - s->p);

    if (left < 2) {
        s->p = s->end;
        return fail(s, "");
    }
    if (s->p[1] != 'u') {
        if (!s->p[1] || !strchr("\"\\/bfnrt", s->p[1]))
            return fail(s, "unknown escape");
        s->p += 2;
        return 0;
    }
    for (size_t i = 2; i < 6; i++)
        if (i >= left || json_hex(s->p[i]) < 0)
            return fail(s, "\\u needs four hexadecimal digits");
    s->p += 6;
    return 0;
}

/* At something inside a string that is not plain. 1: the string ended. */
static int scan_string_special(struct scan *s)
{
    bool ok;
    size_t length;

    if (*s->p == '"') {
        s->p++;
        return 1;
    }
    if (*s->p == '\\')
        return scan_escape(s);
    if ((unsigned char)*s->p < 0x20)
        return fail(s, "control character in a string");
    length = utf8_next(s->p, (size_t)(s->end - s->p), &ok);
    if (!ok && !(s->flags & JSON_LENIENT_UTF8))
        return fail(s, "invalid UTF-8");
    s->p += length;
    return 0;
}

static int scan_string(struct scan *s)
{
    const char *open = s->p++;
    int r = 0;

    while (r == 0) {
        s->p += json_plain_run(s->p, (size_t)(s->end - s->p));
        if (s->p == s->end)
            return fail_at(s, open, "unterminated string");
        r = scan_string_special(s);
    }
    return r < 0 ? -1 : 0;
}

static int scan_digits(struct scan *s)
{
    if (s->p == s->end || !json_is_digit(*s->p))
        return fail(s, "expected a digit");
    while (s->p < s->end && json_is_digit(*s->p))
        s->p++;
    return 0;
}

static int scan_number(struct scan *s)
{
    if (*s->p == '-')
        s->p++;
    if (s->p < s->end && *s->p == '0') {
        s->p++;
        if (s->p < s->end && json_is_digit(*s->p))
            return fail(s, "a number must not begin with 0");
    } else if (scan_digits(s) < 0) {
        return -1;
    }
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        if (scan_digits(s) < 0)
            return -1;
    }
    if (s->p < s->end && (*s->p | 0x20) == 'e') {
        s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            s->p++;
        return scan_digits(s);
    }
    return 0;
}

static int scan_word(struct scan *s)
{
    static const char *const words[] = {"null", "true", "false"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);

        if ((size_t)(s->end - s->p) >= n && memcmp(s->p, words[i], n) == 0) {
            s->p += n;
            return 0;
        }
    }
    if (s->end - s->p >= 3 && memcmp(s->p, "\xef\xbb\xbf", 3) == 0)
        return fail(s, "byte order mark");
    return fail(s, "expected a value");
}

/* ---- structure ---- */

static bool in_object(const struct scan *s)
{
    unsigned top = s->depth - 1;

    return s->is_object[top / 8] & BIT(top % 8);
}

static int push(struct scan *s, bool object)
{
    unsigned at = s->depth;

    if (at == JSON_DEPTH_MAX)
        return fail(s, "nested too deeply (more than 512 levels)");
    s->depth++;
    s->is_object[at / 8] &= (unsigned char)~BIT(at % 8);
    if (object)
        s->is_object[at / 8] |= (unsigned char)BIT(at % 8);
    s->p++;
    return 0;
}
_Static_assert(JSON_DEPTH_MAX == 512, "the message above names it");

static int scan_key(struct scan *s)
{
    if (peek(s) != '"')
        return fail(s, "expected a key in double quotes");
    if (scan_string(s) < 0)
        return -1;
    if (peek(s) != ':')
        return fail(s, "expected ':'");
    s->p++;
    return 0;
}

/* Begins a value. 1: a bracket was opened and another value is due; 0: the value is complete. */
static int scan_open(struct scan *s)
{
    char c = peek(s);

    if (c == '"')
        return scan_string(s);
    if (c == '-' || json_is_digit(c))
        return scan_number(s);
    if (c != '{' && c != '[')
        return scan_word(s);
    if (push(s, c == '{') < 0)
        return -1;
    if (peek(s) == (c == '{' ? '}' : ']')) {
        s->p++;
        s->depth--;
        return 0;
    }
    return c == '{' && scan_key(s) < 0 ? -1 : 1;
}

/* After a value. 1: another one is due; 0: all brackets are closed. */
static int scan_close(struct scan *s)
{
    while (s->depth > 0) {
        bool object = in_object(s);
        char c = peek(s);

        if (c == ',') {
            s->p++;
            return object && scan_key(s) < 0 ? -1 : 1;
        }
        if (c != (object ? '}' : ']'))
            return fail(s, object ? "expected ',' or '}'" : "expected ',' or ']'");
        s->p++;
        s->depth--;
    }
    return 0;
}

static int scan_value(struct scan *s)
{
    int r;

    do {
        r = scan_open(s);
        if (r == 0)
            r = scan_close(s);
    } while (r > 0);
    return r;
}

/* ---- parse ---- */

static int check_duplicates(struct scan *s, struct json_value object)
{
    struct json_value key;
    char what[96];
    int r = json_duplicate_key(object, &key);

    if (r == 0)
        return 0;
    if (r < 0)
        return err_set(s->e, ERR_HOST, "out of memory");
    (void)snprintf(what, sizeof what, "duplicate key %.*s", (int)utf8_truncate(key.p, key.n, 64),
                   key.p);
    return fail_at(s, key.p, what);
}

int json_parse(const char *text, size_t n, unsigned flags, struct json_value *ret, struct err *e)
{
    struct scan s = {.begin = text, .p = text, .end = text + n, .flags = flags, .e = e};
    struct json_value v;

    (void)peek(&s);
    v.p = s.p;
    if (scan_value(&s) < 0)
        return -1;
    v.n = (size_t)(s.p - v.p);
    v.type = json_type_of(*v.p);
    (void)peek(&s);
    if (s.p < s.end && !(flags & JSON_LENIENT_TAIL))
        return fail(&s, "text after the value");
    if (v.type == JSON_OBJECT && !(flags & JSON_LENIENT_DUPES) && check_duplicates(&s, v) < 0)
        return -1;
    *ret = v;
    return 0;
}
