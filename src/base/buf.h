/* SPDX-License-Identifier: MIT */
/* A growable byte buffer with a maximum given at birth. No unbounded buffer exists. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct buf {
    char *p; /* owned; NUL-terminated after every successful append */
    size_t n, cap, max;
    bool failed; /* sticky: an append did not fit or memory ran out */
};

#define BUF_INIT(maximum) ((struct buf){.max = (maximum)})

void buf_done(struct buf *b);  /* frees and empties; the maximum stays */
void buf_clear(struct buf *b); /* keeps the memory; clears `failed` */

/* Each returns 0, or -1 and sets `failed`; the content is then unchanged. Callers may ignore the
 * results and look at `failed` once at the end. */
int buf_put(struct buf *b, const void *p, size_t n);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_reserve(struct buf *b, size_t n);  /* room for n more bytes */
void buf_consume(struct buf *b, size_t n); /* drops n bytes from the front */

/* Hands the memory over to the caller (free()); the buffer is empty afterwards. */
char *buf_take(struct buf *b, size_t *ret_n);
