/* SPDX-License-Identifier: MIT */
/*
 * Lines that a person types, with a history: arrows, Home and End, Ctrl-A E U K W L as in a shell.
 * Where standard input is no terminal, lines are read as they are.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct line_edit;

enum line_end { LINE_GOOD, LINE_STOPPED, LINE_OVER }; /* Ctrl-C; Ctrl-D or the end of input */

must_check struct line_edit *line_edit_new(void); /* NULL: no memory */
void line_edit_free(struct line_edit *l);         /* NULL is fine */
/* The next line without its end, in *out. */
enum line_end line_edit_read(struct line_edit *l, const char *prompt, struct buf *out);
void line_edit_remember(struct line_edit *l, const char *text);
