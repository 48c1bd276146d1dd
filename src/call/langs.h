/* SPDX-License-Identifier: MIT */
/* What a function call has to know of a language: its row in langs.def. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum call_lang_id {
#define CALL_LANG(word, id, aliases, inspect, file, flags, start, wasm, literals) CALL_##id,
#include "call/langs.def"
#undef CALL_LANG
    CALL_LANG_COUNT,
};

enum {
    CALL_KEYWORDS = BIT(0),   /* the language has arguments by name: those with a gap before them
                                 stay names */
    CALL_REFLECTS = BIT(1),   /* its wrapper knows the parameters and binds by itself */
    CALL_COMPILED = BIT(2),   /* a program is made from the code first */
    CALL_INT64 = BIT(3),      /* integers beyond 64 bits cannot be represented */
    CALL_INT53 = BIT(4),      /* integers beyond 53 bits cannot */
    CALL_SURROGATES = BIT(5), /* lone surrogates can be in a string */
    CALL_SESSIONS = BIT(6),   /* its wrapper can stay and be called again */
    CALL_DETECTS = BIT(7),    /* its wrapper finds the function when no name is given: there is no
                                 grammar for the inspector */
    CALL_MODULE = BIT(8),     /* the code is a WebAssembly module in base64 */
    CALL_RELOADS = BIT(9),    /* its wrapper can load its code anew without another process */
};

enum { CALL_ALIASES_MAX = 3, CALL_WORDS = 7 };

struct call_lang {
    const char *name;
    const char *alias[CALL_ALIASES_MAX];
    const char *inspect; /* its name for the inspector; NULL: it knows none */
    const char *file;    /* what the code is called inside, below the working directory */
    unsigned flags;
};

/* NULL behind the last one. */
const struct call_lang *call_lang(size_t i);
/* The row of a name or an alias; -1: there is none. */
int call_lang_find(const char *name, size_t n);
