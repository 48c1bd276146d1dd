/* SPDX-License-Identifier: MIT */
/* What was found: functions, their parameters, their types. Texts point into the source or into the
 * arena and live as long as both. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "inspect/inspect.h"

struct slice {
    const char *p; /* NULL: not there */
    size_t n;
};
#define SLICE(text) ((struct slice){(text), sizeof(text) - 1})

bool slice_is(struct slice s, const char *text);
bool slice_same(struct slice a, struct slice b);
struct slice slice_trim(struct slice s);

/* Memory that is freed all at once. */
struct arena_part;
struct arena {
    struct arena_part *parts; /* owned */
    size_t used;              /* bytes in all */
    bool failed;              /* sticky: the maximum was met or memory ran out */
};
void *arena_take(struct arena *a, size_t n); /* zeroed; NULL: failed */
struct slice arena_copy(struct arena *a, const char *p, size_t n);
void arena_done(struct arena *a);

enum dialect {
    DIALECT_PYTHON,
    DIALECT_JAVASCRIPT,
    DIALECT_RUBY,
    DIALECT_PHP,
    DIALECT_C,
    DIALECT_CPP,
    DIALECT_COUNT,
};

enum param_kind {
    PARAM_POSITIONAL,
    PARAM_POSITIONAL_ONLY,
    PARAM_KEYWORD,  /* by name only */
    PARAM_VARIADIC, /* takes the rest of the positions */
    PARAM_KWARGS,   /* takes the rest of the names */
    PARAM_OPTIONS,  /* an object taken apart in place */
    PARAM_BLOCK,    /* a block of code; nothing a caller could send */
    PARAM_KIND_COUNT,
};

/* What a value is in C or C++, as far as JSON can carry it. */
enum native_class {
    NATIVE_VOID,
    NATIVE_BOOLEAN,
    NATIVE_INTEGER,
    NATIVE_NUMBER,
    NATIVE_STRING,
    NATIVE_ARRAY,
    NATIVE_MAP, /* from strings */
    NATIVE_UNSUPPORTED,
    NATIVE_CLASS_COUNT,
};

struct native {
    enum native_class class;
    struct slice text; /* as C wants it written, without a name */
    unsigned bits;
    bool is_signed, pointer, is_const;
    const char *reference;   /* "", "&" or "&&" */
    const struct native *of; /* element or value; NULL: none */
    const char *why;         /* NATIVE_UNSUPPORTED: what it is; static */
};

struct param {
    struct slice name, type, default_text, description;
    struct slice default_json; /* p == NULL: not a literal that JSON can say */
    struct slice schema;       /* JSON text */
    enum param_kind kind;
    int index; /* -1: no position */
    bool required, unnamed, by_reference;
    const struct native *native; /* NULL: not C or C++ */
};

enum function_kind {
    FUNCTION_PLAIN,
    FUNCTION_METHOD,
    FUNCTION_CONSTRUCTOR,
    FUNCTION_ARROW,
    FUNCTION_LAMBDA,
    FUNCTION_DECLARATION, /* C and C++: no body */
    FUNCTION_KIND_COUNT,
};

struct function {
    struct slice name, scope, doc, summary, refused, return_type, return_doc;
    struct slice return_written; /* C and C++: what stands before the name */
    struct slice return_schema;  /* JSON text; p == NULL: unknown */
    const struct native *return_native;
    enum function_kind kind;
    bool top_level, is_static, is_async, is_generator, exported, is_default, shadowed;
    bool contested; /* C: another definition has other types, and which is compiled is a guess */
    bool candidate; /* may be meant when nobody named a function */
    bool params_left_out;    /* there were more than INSPECT_PARAMS_MAX */
    uint32_t line, end_line; /* from 1 */
    struct param *params;
    size_t params_n;
};

enum { MODEL_CALLED_MAX = 64 };

struct model {
    enum dialect dialect;
    const char *language;
    struct slice text; /* as parsed */
    struct arena arena;
    struct function *functions; /* owned */
    size_t n, cap;
    bool truncated, top_level_return, has_error;
    uint32_t error_line, error_column; /* from 1 */
    /* names that the program calls when it is loaded, outside of any function; the first ones */
    struct slice called[MODEL_CALLED_MAX];
    size_t called_n;
};

/* A new function at the end of the list; NULL when there are too many. */
struct function *model_add(struct model *m);
void model_done(struct model *m);
void model_add_called(struct model *m, struct slice name);
/* Does the program call a function of its own when it is loaded? Then it is a script, and those of
 * its functions that it mentions are for itself. */
bool model_is_script(const struct model *m);
/* Is its name anywhere in the text but in its own lines? */
bool model_mentions(const struct model *m, const struct function *f);
/* Puts what `from` has behind what `m` has, as if it had been found there; `from` is empty then. */
void model_join(struct model *m, struct model *from);
/* What only all of the list can tell: definitions that later ones replace, overloads. */
void model_settle(struct model *m);
