/* SPDX-License-Identifier: MIT */
/* What a program wrote, as it is shown to a language model: without what a terminal would obey, and
 * cut in the middle where it is too long. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends the text without escape sequences and control characters other than tab and newline. */
void shown_plain(struct buf *out, const char *p, size_t n);

/* A text of more than `most` bytes is p[0..head) and p[tail..n), cut at ends of lines where one is
 * near. False: it is not too long. */
struct shown_cut {
    size_t head, tail;
};
bool shown_cut(const char *p, size_t n, size_t most, struct shown_cut *ret);

/* Appends a part on a line of its own, behind its label; nothing for an empty one. Newlines at its
 * end are left out. */
void shown_part(struct buf *text, const char *label, const char *p, size_t n);
