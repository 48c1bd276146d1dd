/* SPDX-License-Identifier: MIT */
/*
 * From text to trees. A large source of Python is parsed in parts, side by side: it is cut before
 * lines that begin a definition at the left margin. If every part is without a mistake, so is the
 * whole, and the trees one after the other are the tree of the whole; a cut inside a string or a
 * bracket leaves a part with a mistake. Then, and for everything else, it is parsed in one piece.
 */
#pragma once

#include <tree_sitter/api.h>

#include "inspect/model.h"

enum {
    PARSE_PARTS_MAX = 4,
    PARSE_PART_MIN = 16 * 1024, /* bytes that are worth a thread */
};

struct forest {
    TSTree *tree[PARSE_PARTS_MAX]; /* owned */
    size_t n;
};

must_check int forest_parse(const TSLanguage *language, enum dialect dialect, struct slice text,
                            struct forest *ret, struct inspect_error *e);
void forest_done(struct forest *f);
