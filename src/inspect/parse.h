/* SPDX-License-Identifier: MIT */
/*
 * From text to trees, and from trees to what is in them. A large source of Python is parsed in
 * parts, side by side: it is cut before lines that begin a definition at the left margin, into
 * parts whose trees fit into the cache of a processor. The thread that parsed a part also collects
 * its functions, and the next part is parsed in the same memory. The longest come first, so that
 * all processors end at about the same time. If every part is without a mistake, so is the whole,
 * and what was found in one after the other is what is in the whole. A cut inside a string or a
 * bracket leaves the part before it with a mistake: such a part is tried once more together with
 * the next. If there is still a mistake, and for everything else, the source is parsed in one
 * piece; with one processor, too, so that there is something to compare with.
 */
#pragma once

#include <tree_sitter/api.h>

#include "inspect/model.h"

enum {
    PARSE_PART_MIN = 8 * 1024, /* bytes of a part; the tree needs up to a hundred times as much */
};

struct source {
    const TSLanguage *grammar;
    struct slice text;
    const struct inspect_memory *memory; /* NULL: the heap */
    /* Adds what is below a root to a model that nobody else touches. In any thread. */
    void (*collect)(const struct source *s, TSNode root, struct model *m);
    const void *language; /* for collect() */
    uint32_t skew;        /* as in struct walk */
};

/* Fills `m`, which knows its dialect and is otherwise empty; it is the caller's on failure, too. */
must_check int source_parse(const struct source *s, struct model *m, struct inspect_error *e);
