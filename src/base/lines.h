/* SPDX-License-Identifier: MIT */
/* A stream of bytes into lines. Whatever is longer than the maximum is handed on in pieces. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* One line without its LF; may be empty. Borrowed for the length of the call. */
typedef void line_fn(void *user, const char *p, size_t n);

struct lines {
    struct buf held; /* a line whose end has not come; its maximum is the longest line */
};

#define LINES_INIT(maximum) ((struct lines){.held = BUF_INIT(maximum)})

void lines_feed(struct lines *l, const char *p, size_t n, line_fn *fn, void *user);
/* The stream is at its end: what is held is a line, too. */
void lines_end(struct lines *l, line_fn *fn, void *user);
void lines_done(struct lines *l);
