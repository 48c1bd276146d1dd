/* SPDX-License-Identifier: MIT */
/*
 * Every language, once: its names, how it is started, and what can be done with it. /execute,
 * function calls, the inspector, interpreters that are started ahead and sbx all read this table
 * (languages.c). The rest of a language is its wrappers, src/lang/wrap/. ARCHITECTURE.md tells how
 * one is added. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "core/plan.h"

enum call_lang_id {
    CALL_PYTHON,
    CALL_JAVASCRIPT,
    CALL_RUBY,
    CALL_PHP,
    CALL_C,
    CALL_CPP,
    CALL_PERL,
    CALL_WASM,
    CALL_LANG_COUNT,              /* languages whose functions can be called */
    CALL_SHELL = CALL_LANG_COUNT, /* those without functions follow */
    LANGUAGE_COUNT,
};

enum {
    CALL_KEYWORDS = BIT(0),     /* the language has arguments by name: those with a gap before them
                                   stay names */
    CALL_REFLECTS = BIT(1),     /* its wrapper knows the parameters and binds by itself */
    CALL_COMPILED = BIT(2),     /* a program is made from the code first */
    CALL_INT64 = BIT(3),        /* integers beyond 64 bits cannot be represented */
    CALL_INT53 = BIT(4),        /* integers beyond 53 bits cannot */
    CALL_SURROGATES = BIT(5),   /* lone surrogates can be in a string */
    CALL_SESSIONS = BIT(6),     /* its wrapper can stay and be called again */
    CALL_DETECTS = BIT(7),      /* its wrapper finds the function when no name is given: there is no
                                   grammar for the inspector */
    CALL_MODULE = BIT(8),       /* the code is a WebAssembly module in base64 */
    CALL_RELOADS = BIT(9),      /* its wrapper can load its code anew without another process */
    CALL_HANDLED = BIT(10),     /* a call is carried by the handler of /execute, warmed or not */
    LANGUAGE_EXECUTE = BIT(11), /* /execute runs it */
    LANGUAGE_FUNCTION = BIT(12), /* its functions can be called */
};

enum { CALL_ALIASES_MAX = 4, CALL_WORDS = 7, LANGUAGE_ENDINGS_MAX = 3, LANGUAGE_ARGS_MAX = 2 };

/* How a language writes values, for argsMode inline. */
struct language_literals {
    const char *null, *yes, *no; /* null NULL: values are handed over as JSON */
    const char *open, *close;    /* of a map */
    const char *arrow;           /* between key and value */
    const char *expanded;        /* characters that need a backslash beside " and \ */
    bool control_u;              /* control characters are \uXXXX, else \xXX */
    const char *controls;        /* which of "bfnrt" are known escapes */
    bool computed_proto;         /* a key __proto__ must be computed, or it sets the prototype */
    const char *least;           /* the least integer, where its digits without the sign overflow */
};

struct call_lang {
    const char *name; /* and that of its wrapper, wrap/call_<name>.* */
    const char *alias[CALL_ALIASES_MAX];
    const char *ending[LANGUAGE_ENDINGS_MAX]; /* of files that sbx knows it by */
    unsigned flags;
    const char *inspect;     /* its name for the inspector; NULL: there is no grammar of it */
    const char *interpreter; /* or compiler: must be there for the language to be available */
    const char *args[LANGUAGE_ARGS_MAX + 1]; /* of the interpreter; the wrapper's text follows */
    const char *reads;           /* begins the variables that the interpreter reads when it starts;
                                    NULL: none of its own */
    enum plan_template template; /* where it was started ahead with these; TEMPLATE_EXEC: nowhere */
    enum plan_template wasm;     /* what runs it with the engine wasm; TEMPLATE_EXEC: nothing */
    const char *file;            /* what the code is called inside, below the working directory */
    const char *place; /* what the wrapper may write in a fenced working directory; NULL: nothing */
    struct language_literals literals;
};

/* A row; NULL behind the last one. */
const struct call_lang *language(size_t i);
/* The row of a name or an alias that has one of these flags; -1: there is none. */
int language_find(const char *name, size_t n, unsigned flags);
/* The row of what was started ahead in a template; NULL: none. */
const struct call_lang *language_of_template(enum plan_template t);

/* The same for languages whose functions can be called. */
const struct call_lang *call_lang(size_t i);
int call_lang_find(const char *name, size_t n);
