/* SPDX-License-Identifier: MIT */
/* Types and literals of six languages in the words of JSON Schema and JSON. Pure. */
#pragma once

#include "inspect/model.h"

/* Appends the schema of a type as it is written in annotations and comments ("{}" when the type
 * says nothing to JSON). */
void schema_of_type(enum dialect d, struct slice type, struct buf *out);
/* The schema of a C or C++ value. */
void schema_of_native(const struct native *n, struct buf *out);
/* Appends the value of a literal. False, and nothing appended, when it is none or JSON cannot say
 * it. */
bool literal_to_json(enum dialect d, struct slice text, struct buf *out);
