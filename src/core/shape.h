/* SPDX-License-Identifier: MIT */
/*
 * Shape: a JSON body into a struct, by a table of fields. Pure. Every API decodes with it.
 *
 * The same table makes the documentation (openapi.c). All errors are collected, not only the first,
 * with the names that FastAPI's clients know. A member that is not in the table is refused, with
 * the nearest name that is. Strings are decoded into one arena; raw values point into the body.
 *
 * Lenient decoding is for an API whose clients rely on it: unknown members are ignored, names match
 * in any case, the last of two equal names wins, null is absent, bytes after the first value are
 * ignored, invalid UTF-8 becomes U+FFFD, a body that is null is empty, nothing is required.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "core/exec_spec.h"

enum shape_type {
    SHAPE_STRING,  /* struct bytes: decoded, NUL behind it; p == NULL when absent */
    SHAPE_INT,     /* int64_t; numbers, or strings that hold one; untouched when absent */
    SHAPE_NUMBER,  /* double; untouched when absent */
    SHAPE_BOOL,    /* bool; untouched when absent */
    SHAPE_CHOICE,  /* int: the index in `words`; untouched when absent */
    SHAPE_RAW,     /* struct json_value: as it came; p == NULL when absent */
    SHAPE_STRINGS, /* struct shape_strings: an object of strings, names of variables */
    SHAPE_LIST,    /* struct shape_strings: an array of strings; names stay empty */
    SHAPE_NESTED,  /* an object: `inner` is its table, `at` where its struct begins */
    SHAPE_FILES,   /* struct shape_strings: an object of paths, each a text or {"base64": "..."} */
    SHAPE_TEXT,    /* struct buf of the target's own: a string that may be large; .p == NULL when
                      absent, to be released with buf_done() */
    SHAPE_TYPE_COUNT,
};

enum {
    SHAPE_REQUIRED = BIT(0),
    SHAPE_NULLABLE = BIT(1), /* null counts as absent */
    SHAPE_OLD = BIT(2),      /* accepted, not documented: a place where it used to be */

    SHAPE_FIELDS_MAX = 32,
    SHAPE_ISSUES_MAX = 64,
    SHAPE_DEPTH_MAX = 6,      /* objects inside objects */
    SHAPE_NAME_MAX = 64,      /* of a member quoted in an issue */
    SHAPE_STRINGS_MAX = 1000, /* members of an object or an array of strings, if `max` is 0 */
};

struct shape_strings {
    struct exec_var *v; /* owned by the shaping */
    size_t n;
};

struct shape;
struct shape_field;
struct shaping;

/* Looks at a value that has the right type already; complains with shape_complain(). */
typedef void shape_check_fn(struct shaping *s, const struct shape_field *f, const void *value);

struct shape_field {
    const char *name;
    enum shape_type type;
    unsigned flags;
    size_t at;             /* offset in the target */
    int64_t min, max;      /* of a number, and how many strings there may be; max 0: none */
    shape_check_fn *check; /* may be NULL */
    const char *help;
    const struct shape *inner; /* NESTED; of RAW: what the documentation says is in it */
    const char *const *words;  /* CHOICE, and of STRING for the documentation: ends with NULL */
    unsigned accepts;          /* RAW: BIT(enum json_type) | …; 0: any value */
    const char *schema;        /* of RAW: JSON Schema for the documentation, if not `inner` */
};

enum {
    SHAPE_NULLS = BIT(0), /* null counts as absent in every field */
    SHAPE_OPEN = BIT(1),  /* unknown members are ignored */
};

struct shape {
    const struct shape_field *fields;
    size_t n;
    unsigned flags;
    const char *name; /* in the documentation; NULL: not a schema of its own */
};

struct shape_issue {
    const char *in[SHAPE_DEPTH_MAX]; /* static: names of the objects around; the rest NULL */
    const char *field;               /* static or `unknown`; NULL: the body as a whole */
    char unknown[SHAPE_NAME_MAX];    /* the name that no table has */
    char member[SHAPE_NAME_MAX];     /* of an object of strings; "": the field itself */
    const char *type;                /* static */
    char msg[200];
};

struct shape_block; /* memory for strings */

/* One body being shaped; owns what the target points to. */
struct shaping {
    const void *user; /* for the checks; borrowed */
    bool lenient;
    size_t room; /* bytes to reserve in the arena beside what is decoded */
    struct buf arena;
    struct shape_block *blocks; /* owned */
    const char *in[SHAPE_DEPTH_MAX];
    size_t depth;
    size_t issues_n;
    struct shape_issue *issues; /* owned; made for the first of them, NULL when out of memory */
};

void shaping_init(struct shaping *s, const void *user);
void shaping_done(struct shaping *s);

/* Fills the target; 0, or -1 when there are issues. The text must outlive the target. */
must_check int shape_parse(const struct shape *shape, const char *text, size_t n, void *target,
                           struct shaping *s);
/* The same for a value that has been scanned. `within`: the name of the member it is, or NULL. */
must_check int shape_value(const struct shape *shape, struct json_value v, const char *within,
                           void *target, struct shaping *s);
/* Room for shape_value(), when shape_parse() did not make it. -1: an issue. */
must_check int shaping_reserve(struct shaping *s, size_t n);

void shape_complain(struct shaping *s, const char *field, const char *member, const char *type,
                    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The issues as FastAPI's `detail` array. */
void shape_issues_json(const struct shaping *s, struct buf *out);
/* The first issue in words: "options.timeout: Input should be a valid number". */
enum { SHAPE_WORDS_MAX = 512 };
void shape_words(const struct shaping *s, char out[SHAPE_WORDS_MAX]);
/* The same as an error of the caller. Returns -1. */
int shape_err(const struct shaping *s, struct err *e);
/* The field whose name is nearest to what somebody wrote; NULL: none is near. */
const struct shape_field *shape_nearest(const struct shape *shape, const char *name);
