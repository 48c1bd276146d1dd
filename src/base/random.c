/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

/* getentropy() is the kernel's generator on every system we build for, 256 bytes at a time. */
enum { ENTROPY_MAX = 256 };

void random_bytes(void *p, size_t n)
{
    char *at = p;

    while (n > 0) {
        size_t now = n < ENTROPY_MAX ? n : ENTROPY_MAX;

        if (getentropy(at, now) < 0) {
            if (errno == EINTR)
                continue;
            abort(); /* identifiers and secrets that can be guessed are worse than none */
        }
        at += now;
        n -= now;
    }
}

void random_base36(char *out, size_t n)
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    enum { EVEN = 252 }; /* 7 * 36: bytes from here on would favour the first digits */
    unsigned char pool[64];
    size_t have = 0;

    for (size_t i = 0; i < n;) {
        if (have == 0) {
            random_bytes(pool, sizeof pool);
            have = sizeof pool;
        }
        have--;
        if (pool[have] < EVEN)
            out[i++] = digits[pool[have] % 36];
    }
    out[n] = '\0';
}

static char *put_hex(char *out, const unsigned char *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        *out++ = digits[p[i] >> 4];
        *out++ = digits[p[i] & 15];
    }
    return out;
}

void random_hex(char *out, size_t bytes)
{
    while (bytes > 0) {
        unsigned char pool[64];
        size_t now = bytes < sizeof pool ? bytes : sizeof pool;

        random_bytes(pool, now);
        out = put_hex(out, pool, now);
        bytes -= now;
    }
    *out = '\0';
}

void random_uuid4(char out[37])
{
    static const unsigned char groups[] = {4, 2, 2, 2, 6};
    unsigned char u[16];
    size_t at = 0;

    random_bytes(u, sizeof u);
    u[6] = (unsigned char)((u[6] & 0x0f) | 0x40); /* version 4 */
    u[8] = (unsigned char)((u[8] & 0x3f) | 0x80); /* RFC 4122 variant */
    for (size_t g = 0; g < sizeof groups; g++) {
        if (g > 0)
            *out++ = '-';
        out = put_hex(out, u + at, groups[g]);
        at += groups[g];
    }
    *out = '\0';
}
