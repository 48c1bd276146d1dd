/* SPDX-License-Identifier: MIT */
/*
 * Shape: a JSON body into a struct, by a table of fields. Pure.
 *
 * The same table makes the documentation (openapi.c). All errors are collected, not only the first,
 * with the names that FastAPI's clients know. Keys that are not in the table are ignored. Strings
 * are decoded into one arena; objects stay raw text, pointing into the body.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "core/exec_spec.h"

enum shape_type {
    SHAPE_STRING,  /* struct bytes: decoded, NUL behind it; p == NULL when absent */
    SHAPE_INT,     /* int64_t; numbers, or strings that hold one; untouched when absent */
    SHAPE_OBJECT,  /* struct bytes: raw text; p == NULL when absent */
    SHAPE_STRINGS, /* struct shape_strings: an object of strings */
    SHAPE_LIST,    /* struct shape_strings: an array of strings; names stay empty */
};

enum {
    SHAPE_REQUIRED = BIT(0),
    SHAPE_NULLABLE = BIT(1), /* null counts as absent */

    SHAPE_FIELDS_MAX = 32,
    SHAPE_ISSUES_MAX = 64,
    SHAPE_NAME_MAX = 64,      /* of a member quoted in an issue */
    SHAPE_STRINGS_MAX = 1000, /* members of an object or an array of strings */
};

struct shape_strings {
    struct exec_var *v; /* owned by the shaping */
    size_t n;
};

struct shape_field;
struct shaping;

/* Looks at a value that has the right type already; complains with shape_complain(). */
typedef void shape_check_fn(struct shaping *s, const struct shape_field *f, const void *value);

struct shape_field {
    const char *name;
    enum shape_type type;
    unsigned flags;
    size_t at;             /* offset in the target */
    int64_t min, max;      /* integers; max 0: none */
    shape_check_fn *check; /* may be NULL */
    const char *help;
};

struct shape {
    const struct shape_field *fields;
    size_t n;
};

struct shape_issue {
    const char *field;           /* static; NULL: the body as a whole */
    char member[SHAPE_NAME_MAX]; /* of an object of strings; "": the field itself */
    const char *type;            /* static */
    char msg[200];
};

/* One body being shaped; owns what the target points to. */
struct shaping {
    const void *user; /* for the checks; borrowed */
    struct buf arena;
    struct exec_var *strings; /* owned */
    size_t issues_n;
    struct shape_issue issues[SHAPE_ISSUES_MAX];
};

void shaping_init(struct shaping *s, const void *user);
void shaping_done(struct shaping *s);

/* Fills the target; 0, or -1 when there are issues. The text must outlive the target. */
must_check int shape_parse(const struct shape *shape, const char *text, size_t n, void *target,
                           struct shaping *s);
void shape_complain(struct shaping *s, const char *field, const char *member, const char *type,
                    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The issues as FastAPI's `detail` array. */
void shape_issues_json(const struct shaping *s, struct buf *out);
