/* SPDX-License-Identifier: MIT */
/* Schemas of bodies that no field table (shape.h) describes, for the documentation. */
#pragma once

#include <stddef.h>

#include "http/route.h"

/* A member of a body. `schema` is raw JSON. */
struct openapi_member {
    const char *name, *schema, *help;
};

struct openapi_schema {
    const char *name;
    const struct openapi_member *members;
    size_t n;
    const char *required; /* raw JSON: an array of names; NULL: none */
};

#define T_STRING  "{\"type\":\"string\"}"
#define T_INT     "{\"type\":\"integer\"}"
#define T_NUMBER  "{\"type\":\"number\"}"
#define T_BOOL    "{\"type\":\"boolean\"}"
#define T_OBJECT  "{\"type\":\"object\"}"
#define T_ANY     "{}"
#define T_STRINGS "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define T_OBJECTS "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"

/* ---- openapi.c ---- */

enum { OPENAPI_PATH_MAX = 256 };
/* "/v1/executions/{id}/artifacts/{path}" of a route's pattern. */
void openapi_path(const char *pattern, char out[OPENAPI_PATH_MAX]);
const struct openapi_schema *openapi_execution_result(void);

/* ---- openapi_functions.c ---- */

extern const struct openapi_schema openapi_functions[];
extern const size_t openapi_functions_n;
/* The body a route takes, and that of its good answer: names of schemas; NULL: not one of them. */
const char *openapi_function_body(const struct route *r);
const char *openapi_function_answer(const struct route *r);
