/* SPDX-License-Identifier: MIT */
/* The resource sbx://guide: what a language model should know of the sandboxes of this daemon. */
#pragma once

#include "base/buf.h"

struct app;

enum { GUIDE_MAX = 16 << 10 };

/* Markdown. */
void mcp_write_guide(const struct app *a, struct buf *out);
