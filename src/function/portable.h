/* SPDX-License-Identifier: MIT */
/*
 * JSON Schemas that every client of language models takes: objects of named properties with one
 * type each, and none of anyOf, oneOf, allOf, not, if, $ref, $defs, patternProperties. Pure.
 *
 * They are made from the schemas that the inspector writes. What cannot be said in the portable
 * form is said in words, in the description; calls are checked against the whole schema.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

enum {
    PORTABLE_MAX = 64 << 10,   /* bytes of one schema */
    PORTABLE_DEPTH_MAX = 16,   /* schemas inside each other */
    PORTABLE_NAME_MAX = 64,    /* of a property */
    PORTABLE_WORDS_MAX = 1000, /* bytes of a description */
};

/* [A-Za-z0-9_-]{1,64} */
bool portable_name_is_good(const char *p, size_t n);

/* Appends the portable form of an object of parameters: {"type":"object","properties":{...}}. -1:
 * a name that clients refuse, or it is too large or too deep; the words are for its author. */
must_check int portable_parameters(struct json_value parameters, struct buf *out, struct err *e);

/* Does the schema allow null, beside what else it allows? */
bool portable_is_nullable(struct json_value schema);
