/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BUF_FIRST = 256 }; /* smallest allocation */

static int fail(struct buf *b)
{
    b->failed = true;
    return -1;
}

void buf_done(struct buf *b)
{
    size_t max = b->max;

    free(b->p);
    *b = BUF_INIT(max);
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    b->failed = false;
    if (b->p)
        b->p[0] = '\0';
}

/* Doubles, so that appending stays linear, but asks for no more than the maximum and its NUL. */
static int grow(struct buf *b, size_t need)
{
    size_t cap = b->cap < BUF_FIRST / 2 ? BUF_FIRST : b->cap * 2;
    char *p;

    if (cap < need)
        cap = need;
    if (cap > b->max)
        cap = b->max + 1;
    p = realloc(b->p, cap);
    if (!p)
        return fail(b);
    b->p = p;
    b->cap = cap;
    b->p[b->n] = '\0';
    return 0;
}

int buf_reserve(struct buf *b, size_t n)
{
    assert(b->max < SIZE_MAX / 4);
    if (n > b->max - b->n)
        return fail(b);
    return b->n + n < b->cap ? 0 : grow(b, b->n + n + 1);
}

int buf_put(struct buf *b, const void *p, size_t n)
{
    if (b->failed || buf_reserve(b, n) < 0)
        return -1;
    if (n > 0)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *s)
{
    return buf_put(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
    if (b->failed || (b->n + 1 >= b->cap && buf_reserve(b, 1) < 0))
        return -1;
    b->p[b->n++] = c;
    b->p[b->n] = '\0';
    return 0;
}

__attribute__((format(printf, 2, 0))) static int put_formatted(struct buf *b, const char *fmt,
                                                               va_list ap)
{
    va_list again;
    size_t room = b->cap > b->n ? b->cap - b->n : 0;
    int n;

    va_copy(again, ap);
    /* Version 14 of the analyzer takes a list that came as an argument for one that never began. */
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    n = vsnprintf(room ? b->p + b->n : NULL, room, fmt, ap);
    if (n >= 0 && (size_t)n >= room) {
        if (room)
            b->p[b->n] = '\0'; /* the content is unchanged if this does not fit */
        if (buf_reserve(b, (size_t)n) < 0)
            n = -1;
        else
            n = vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    if (n < 0)
        return fail(b);
    b->n += (size_t)n;
    return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int r;

    if (b->failed)
        return -1;
    va_start(ap, fmt);
    r = put_formatted(b, fmt, ap);
    va_end(ap);
    return r;
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->n);
    if (n == 0)
        return;
    b->n -= n;
    memmove(b->p, b->p + n, b->n + 1);
}

char *buf_take(struct buf *b, size_t *ret_n)
{
    char *p = b->p;
    size_t max = b->max;

    if (ret_n)
        *ret_n = b->n;
    *b = BUF_INIT(max);
    return p;
}
