/* SPDX-License-Identifier: MIT */
#include "base/base64.h"

#include <stdbool.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Value plus one; 0: not in the alphabet. */
/* clang-format off */
static const unsigned char values[256] = {
    ['A'] =  1, ['B'] =  2, ['C'] =  3, ['D'] =  4, ['E'] =  5, ['F'] =  6, ['G'] =  7, ['H'] =  8,
    ['I'] =  9, ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};
/* clang-format on */

static void encode3(const unsigned char *p, char out[4])
{
    out[0] = alphabet[p[0] >> 2];
    out[1] = alphabet[(p[0] & 3) << 4 | p[1] >> 4];
    out[2] = alphabet[(p[1] & 15) << 2 | p[2] >> 6];
    out[3] = alphabet[p[2] & 63];
}

int base64_encode(const void *p, size_t n, struct buf *out)
{
    const unsigned char *u = p;
    unsigned char last[3] = {0};
    size_t whole = n - n % 3, rest = n % 3;

    if (out->failed || n > out->max || buf_reserve(out, BASE64_LENGTH(n)) < 0) {
        out->failed = true;
        return -1;
    }
    for (size_t i = 0; i < whole; i += 3, out->n += 4)
        encode3(u + i, out->p + out->n);
    if (rest > 0) {
        for (size_t i = 0; i < rest; i++)
            last[i] = u[whole + i];
        encode3(last, out->p + out->n);
        for (size_t i = rest + 1; i < 4; i++)
            out->p[out->n + i] = '=';
        out->n += 4;
    }
    out->p[out->n] = '\0';
    return 0;
}

/* Four characters to three bytes; false if one is not in the alphabet. */
static bool decode4(const unsigned char *p, char out[3])
{
    unsigned a = values[p[0]], b = values[p[1]], c = values[p[2]], d = values[p[3]];
    uint32_t v;

    if (!a || !b || !c || !d)
        return false;
    v = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
    out[0] = (char)(v >> 16);
    out[1] = (char)(v >> 8);
    out[2] = (char)v;
    return true;
}

/* The last four characters, with or without padding. Bytes written, or -1. */
static int decode_last(const unsigned char *p, char out[3])
{
    int pad = (p[3] == '=') + (p[3] == '=' && p[2] == '=');
    unsigned char full[4] = {p[0], p[1], pad > 1 ? 'A' : p[2], pad > 0 ? 'A' : p[3]};

    if (!decode4(full, out))
        return -1;
    for (int i = 3 - pad; i < 3; i++)
        if (out[i] != 0)
            return -1; /* bits that belong to no byte must be zero */
    return 3 - pad;
}

int base64_decode(const char *text, size_t n, struct buf *out)
{
    const unsigned char *u = (const unsigned char *)text;
    char *at;
    int last;

    if (n % 4 != 0)
        return -1;
    if (out->failed || buf_reserve(out, n / 4 * 3) < 0) {
        out->failed = true;
        return -1;
    }
    out->p[out->n] = '\0';
    if (n == 0)
        return 0;
    at = out->p + out->n;
    for (; n > 4; n -= 4, u += 4, at += 3)
        if (!decode4(u, at))
            goto bad;
    last = decode_last(u, at);
    if (last < 0)
        goto bad;
    out->n = (size_t)(at + last - out->p);
    out->p[out->n] = '\0';
    return 0;
bad:
    out->p[out->n] = '\0';
    return -1;
}
