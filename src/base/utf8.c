/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

/*
 * What may follow a lead byte. The first continuation byte has a narrower range after E0, ED, F0
 * and F4: that is what excludes overlong forms, surrogates and values beyond U+10FFFF.
 */
struct lead {
    unsigned char more;   /* continuation bytes; 0: no lead byte at all */
    unsigned char lo, hi; /* range of the first of them */
};

/* clang-format off */
static const struct lead leads[256] = {
    [0xc2 ... 0xdf] = {1, 0x80, 0xbf},
    [0xe0]          = {2, 0xa0, 0xbf},
    [0xe1 ... 0xec] = {2, 0x80, 0xbf},
    [0xed]          = {2, 0x80, 0x9f},
    [0xee ... 0xef] = {2, 0x80, 0xbf},
    [0xf0]          = {3, 0x90, 0xbf},
    [0xf1 ... 0xf3] = {3, 0x80, 0xbf},
    [0xf4]          = {3, 0x80, 0x8f},
};
/* clang-format on */

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t utf8_next(const char *p, size_t n, bool *ret_ok)
{
    const unsigned char *u = (const unsigned char *)p;
    const struct lead *l = &leads[u[0]];
    size_t i = 2;

    *ret_ok = u[0] < 0x80;
    if (l->more == 0 || n < 2 || u[1] < l->lo || u[1] > l->hi)
        return 1;
    while (i <= l->more && i < n && is_continuation(u[i]))
        i++;
    *ret_ok = i > l->more;
    return i;
}

size_t utf8_valid_prefix(const char *p, size_t n)
{
    size_t at = 0;

    while (at < n) {
        uint64_t eight;
        bool ok;
        size_t length;

        if (n - at >= sizeof eight) {
            memcpy(&eight, p + at, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) { /* ASCII, eight at a time */
                at += sizeof eight;
                continue;
            }
        }
        length = utf8_next(p + at, n - at, &ok);
        if (!ok)
            return at;
        at += length;
    }
    return n;
}

bool utf8_is_valid(const char *p, size_t n)
{
    return utf8_valid_prefix(p, n) == n;
}

size_t utf8_incomplete_tail(const char *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)p[n - back];
        bool ok;

        if (is_continuation(c))
            continue;
        /* Only a part that reaches the very end can still become a character. */
        if (leads[c].more < back || utf8_next(p + n - back, back, &ok) != back)
            return 0;
        return back;
    }
    return 0;
}

size_t utf8_truncate(const char *p, size_t n, size_t max)
{
    if (n <= max)
        return n;
    return max - utf8_incomplete_tail(p, max);
}

uint32_t utf8_decode(const char *p, size_t length)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const unsigned char *u = (const unsigned char *)p;
    uint32_t c = u[0] & mask[length];

    for (size_t i = 1; i < length; i++)
        c = c << 6 | (u[i] & 0x3fu);
    return c;
}

size_t utf8_encode(uint32_t c, char out[4])
{
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n;

    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        c = 0xfffd;
    n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(marks[n] | c);
    return n;
}
