/* SPDX-License-Identifier: MIT */
/*
 * What is known of a function's parameters: from the request's schema, or from the inspector's
 * answer. Pure. Everything points into the JSON it was read from, which must outlive it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"

enum { CALL_PARAMS_MAX = 256 };

enum param_kind {
    PARAM_POSITIONAL,
    PARAM_POSITIONAL_ONLY,
    PARAM_KEYWORD,
    PARAM_VARIADIC,
    PARAM_KWARGS,
    PARAM_OPTIONS,
    PARAM_BLOCK,
    PARAM_KINDS,
};

struct call_param {
    struct json_value name;     /* a JSON string; p == NULL: none */
    struct json_value schema;   /* p == NULL: none */
    struct json_value native;   /* C and C++: how the type is to be converted; p == NULL: unknown */
    struct json_value fallback; /* schema: default; p == NULL: none */
    enum param_kind kind;
    int index; /* -1: has none */
    bool required;
};

enum signature_source { SIGNATURE_CONVENTION, SIGNATURE_INFERRED, SIGNATURE_SCHEMA };
const char *signature_source_name(enum signature_source s);

struct call_signature {
    enum signature_source source;
    bool strict;
    bool contested; /* C: it may be another definition that is compiled */
    struct call_param params[CALL_PARAMS_MAX];
    size_t n;
    struct json_value result; /* native type of what is returned; p == NULL: unknown */
};

/* From a FunctionSchema. -1: it is not one; the words name the place. */
must_check int signature_from_schema(struct call_signature *s, struct json_value schema,
                                     struct err *e);

/* What the inspector says of a piece of code. */
struct call_found {
    struct json_value name;     /* the only candidate; p == NULL: none or several */
    bool several;               /* then `words` names them */
    struct json_value function; /* the one that is meant; p == NULL: not there */
    char words[400];
};
/* name: which function, p == NULL: the detected one. The JSON comes from a sandbox: nothing in it
 * is trusted. -1: it is not what the inspector writes. */
must_check int signature_find(struct json_value inspected, const char *name, size_t n,
                              struct call_found *ret, struct err *e);
must_check int signature_from_function(struct call_signature *s, struct json_value function,
                                       struct err *e);
