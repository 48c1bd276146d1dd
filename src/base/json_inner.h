/* SPDX-License-Identifier: MIT */
/*
 * What the JSON files share among themselves; nobody else's business.
 *
 * Runs inside strings are skipped eight bytes at a time. The word tests may cry wolf (a borrow runs
 * into the next byte) but never miss; the byte loop behind them is exact.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"

#define JSON_EACH(byte) ((byte)*0x0101010101010101u)

static inline uint64_t json_word_has(uint64_t w, uint64_t byte)
{
    uint64_t x = w ^ JSON_EACH(byte);

    return (x - JSON_EACH(0x01u)) & ~x & JSON_EACH(0x80u);
}

static inline bool json_is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Eight of them? */
static inline bool json_word_is_plain(const char *p)
{
    uint64_t w;

    memcpy(&w, p, sizeof w);
    return !(((w | (w - JSON_EACH(0x20u))) & JSON_EACH(0x80u)) | json_word_has(w, '"') |
             json_word_has(w, '\\'));
}

/* How many bytes from p on are printable ASCII (DEL included) but neither quote nor backslash. The
 * last few are looked at together with some that were looked at before. */
static inline size_t json_plain_run(const char *p, size_t n)
{
    enum { WORD = sizeof(uint64_t) };
    size_t i = 0;

    while (n - i >= WORD && json_word_is_plain(p + i))
        i += WORD;
    if (n >= WORD && n - i < WORD && json_word_is_plain(p + n - WORD))
        return n;
    while (i < n && json_is_plain((unsigned char)p[i]))
        i++;
    return i;
}

/* How many bytes from p on are neither quote nor backslash. */
static inline size_t json_quote_run(const char *p, size_t n)
{
    size_t i = 0;

    for (; n - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
        uint64_t w;

        memcpy(&w, p + i, sizeof w);
        if (json_word_has(w, '"') | json_word_has(w, '\\'))
            break;
    }
    while (i < n && p[i] != '"' && p[i] != '\\')
        i++;
    return i;
}

static inline bool json_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline const char *json_skip_space(const char *p, const char *end)
{
    while (p < end && json_is_space(*p))
        p++;
    return p;
}

static inline bool json_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline int json_hex(char c)
{
    if (json_is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The type of a well-formed value, by its first character. */
static inline enum json_type json_type_of(char c)
{
    switch (c) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 'n':
        return JSON_NULL;
    case 't':
    case 'f':
        return JSON_BOOL;
    default:
        return JSON_NUMBER;
    }
}

/* Of a validated object: 1 and the key, if one occurs twice (escapes resolved); 0; -1 when out of
 * memory. */
int json_duplicate_key(struct json_value object, struct json_value *ret_key);
