/* SPDX-License-Identifier: MIT */
/* What /openapi.json and /docs are made of: the route tables, the field tables, and schemas of
 * answers. */
#pragma once

#include <stddef.h>

#include "base/jw.h"
#include "http/server/route.h"

/* A member of an answer. `schema` is raw JSON. */
struct openapi_member {
    const char *name, *schema, *help;
};

/* An answer. Members that are not listed may be there, too. */
struct openapi_schema {
    const char *name;
    const struct openapi_member *members;
    size_t n;
    const char *required; /* raw JSON: an array of names; NULL: none */
};

/* ---- openapi_answers.c ---- */

extern const struct openapi_schema openapi_answers[];
extern const size_t openapi_answers_n;

/* ---- openapi.c ---- */

struct dialect;
/* The i-th dialect that is documented here; NULL: there are no more. */
const struct dialect *openapi_dialect(size_t i);

enum { OPENAPI_PATH_MAX = 256 };
/* The name of the parameter that a star of a pattern stands for, and how long it is. */
size_t openapi_parameter(const char *pattern, const char *star, const char **ret);
/* "/v1/executions/{id}/artifacts/{path}" of a route's pattern. */
void openapi_path(const char *pattern, char out[OPENAPI_PATH_MAX]);
/* "postSandboxesIdRun" of a route: what a client's function may be called. */
void openapi_operation(const struct route *r, char out[OPENAPI_PATH_MAX]);
/* Is its body the bytes of files, and not JSON? One that takes any method is described by GET. */
bool openapi_takes_bytes(const struct route *r);
/* The whole document. */
void openapi_write(struct jw *w);
/* NULL: there is none of that name. `n`: of the name. */
const struct openapi_schema *openapi_answer(const char *name, size_t n);
