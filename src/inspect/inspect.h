/* SPDX-License-Identifier: MIT */
/*
 * sandbox-inspect: which functions does a piece of source text define, and how are they called?
 *
 *   text ─▶ parse (tree-sitter) ─▶ collect (one file per language) ─▶ model ─▶ write (JSON)
 *
 * The text is a tenant's and hostile, so this is a program of its own that runs only inside a
 * sandbox; the daemon never parses a language. Nothing of the text is ever run. What it may cost is
 * bounded by the names below: the parser by time, the walk by nodes and depth, the answer by bytes.
 * Whatever the parser makes of broken text, functions are listed as far as they were recognised.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum {
    INSPECT_SOURCE_MAX = 8 << 20,  /* bytes of source text */
    INSPECT_OUTPUT_MAX = 16 << 20, /* bytes of the answer; functions beyond are not listed */
    INSPECT_ARENA_MAX = 64 << 20,  /* bytes of texts made on the way */
    INSPECT_PARSE_MS = 3000,       /* the parser gives up */
    INSPECT_FUNCTIONS_MAX = 10000, /* further ones are not listed */
    INSPECT_PARAMS_MAX = 255,      /* of one function; further ones are not listed */
    INSPECT_NODES_MAX = 4000000,   /* looked at in one walk */
    INSPECT_CALLS_MAX = 50000,     /* looked at for calls outside of functions */
    INSPECT_SCOPE_MAX = 24,        /* classes in modules in namespaces in ... */
    INSPECT_DEPTH_MAX = 16,        /* types within types, literals within literals */
    INSPECT_TEXT_MAX = 16384,      /* bytes of one type, default or comment in the answer */
};

/* Why there is no answer. */
struct inspect_error {
    const char *type; /* static: ParseTimeout, SourceTooLong, ... */
    const char *message;
};

/* Memory of the library that is given back all at once: what a thread took since its mark. */
struct inspect_mark {
    void *room;
    char *next;
};
struct inspect_memory {
    struct inspect_mark (*mark)(void);
    void (*return_to)(struct inspect_mark m);
};

/*
 * Appends the answer to `out` (whose maximum bounds it). Fails with *ret_error set, and then `out`
 * holds nothing of use. With `memory`, a tree is not taken apart but given back whole, and the
 * rest is left to a process that is about to end anyway; NULL: the heap, and all of it is freed.
 */
must_check int inspect_source(const char *language, const char *text, size_t n,
                              const struct inspect_memory *memory, struct buf *out,
                              struct inspect_error *ret_error);
