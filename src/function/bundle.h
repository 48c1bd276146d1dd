/* SPDX-License-Identifier: MIT */
/*
 * A bundle: functions of one source text, published as tools. Pure.
 *
 * Its record is a JSON object, which is what is kept on disk. The list of tools in it is made from
 * what the inspector says of the source text; a record is read back into a struct bundle, whose
 * members are views into it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "core/exec_spec.h"
#include "core/shape.h"

enum {
    BUNDLE_NAME_MAX = 48,
    BUNDLE_TOOLS_MAX = 64,       /* of one bundle */
    BUNDLE_TOOL_NAME_MAX = 64,   /* prefix and function */
    BUNDLE_WARNINGS_MAX = 32,    /* told */
    BUNDLE_LIST_MAX = 256,       /* names in include and exclude */
    BUNDLE_TEXT_MAX = 1000,      /* bytes of a description, without what we add */
    BUNDLE_TIMEOUT_S = 30,       /* of a call, when nothing else is asked for */
    BUNDLE_TIMEOUT_MAX_S = 3600, /* at most, whatever is asked for */
    BUNDLE_RECORD_ROOM = 8 << 20 /* bytes of a record beside its source text */
};

struct bundle;

struct published {
    struct bundle *bundle; /* borrowed: it has this */
    char name[BUNDLE_TOOL_NAME_MAX + 1];
    struct json_value function;    /* its name in the source text, JSON */
    struct json_value description; /* JSON */
    struct json_value schema;      /* of its arguments, as clients are told */
    struct json_value call;        /* the `schema` of a call */
    struct json_value variadic;    /* the argument that is spread, JSON; p == NULL: none */
    int64_t variadic_at;           /* its position */
};

/* As its record has it. */
struct bundle_members {
    struct bytes name, language, code, prefix, sha256, created_at, by;
    int64_t version, timeout_s, memory_mb; /* memory_mb 0: as configured */
    struct shape_strings env, include, exclude;
    struct json_value tools, warnings;
};

struct bundle {
    TAILQ_ENTRY(bundle) link; /* the owner's */
    struct buf text;          /* owned: the record */
    struct shaping shaping;   /* owned */
    struct bundle_members is;
    struct published *tools; /* owned array */
    size_t tools_n;
};

/* [A-Za-z][A-Za-z0-9_-]{0,47} */
bool bundle_name_is_good(const char *p, size_t n);

/* Which functions become tools, and how they are named. */
struct bundle_choice {
    struct bytes bundle, prefix;
    const struct exec_var *include, *exclude; /* names of functions, in `value` */
    size_t include_n, exclude_n;              /* include_n 0: all that can be taken */
};
/*
 * Appends an array of tools and an array of warnings, from the answer of the inspector. -1: the
 * source text has a mistake, or no function that can be taken.
 */
must_check int bundle_write_tools(const struct bundle_choice *c, struct json_value inspected,
                                  struct buf *tools, struct buf *warnings, struct err *e);

/* The whole record. tools and warnings of the members are its arrays. */
void bundle_write(const struct bundle_members *m, struct buf *out);

/* Bytes of its variables and lists. */
size_t bundle_vars_room(const struct bundle_members *m);

/* The text is taken if it succeeds. A record may have no tools yet. */
must_check int bundle_read(struct buf *text, struct bundle **ret, struct err *e);
/* Both: a bundle of these members; `room`: the most bytes of its record. */
must_check int bundle_remake(const struct bundle_members *m, size_t room, struct bundle **ret,
                             struct err *e);
void bundle_free(struct bundle *b); /* NULL is fine */

/* The tool of that name; NULL: it has none. */
struct published *bundle_tool(const struct bundle *b, const char *name, size_t n);
/* One call of a tool. */
struct published_order {
    const struct published *tool;
    struct json_value arguments; /* an object; p == NULL: none */
    int64_t most_s;              /* it ends after so long; 0: after the time of its bundle */
};
/* Writes the body of POST /v1/functions/call. -1: an argument that the tool does not know; the
 * words name it and the ones there are. */
must_check int published_write_call(const struct published_order *p, struct buf *out,
                                    struct err *e);
