/* SPDX-License-Identifier: MIT */
/*
 * JSON in: a strict scanner (RFC 8259, UTF-8, depth limit) that keeps raw text.
 *
 * Tenant values travel as the text they came in, so the scanner validates and
 * tells where each value begins and ends; it does not build trees of numbers.
 * Only the envelope's own fields are decoded. No NaN, comments, trailing
 * commas, BOM, lone surrogates in decoded strings, or invalid UTF-8.
 *
 * Duplicate keys are refused in the outermost object, after escapes are
 * resolved. Objects further inside are tenants' values: they keep theirs.
 * An escaped lone surrogate is good JSON and travels; only decoding refuses it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* A validated value: a view into the text it was scanned from. */
struct json_value {
    enum json_type type;
    const char *p; /* borrowed, without surrounding white space */
    size_t n;
};

enum { JSON_DEPTH_MAX = 512 };

/* Flags for leniency that only the Koyeb family wants. */
enum {
    JSON_LENIENT_TAIL = BIT(0),  /* bytes after the first value are ignored */
    JSON_LENIENT_UTF8 = BIT(1),  /* invalid UTF-8 and lone surrogates become U+FFFD on decoding */
    JSON_LENIENT_DUPES = BIT(2), /* last duplicate wins instead of an error (json_object_next sees
                                    all of them) */
};

/* Validates text[0..n) as one value. Errors are ERR_CALLER with line and column. */
must_check int json_parse(const char *text, size_t n, unsigned flags, struct json_value *ret,
                          struct err *e);

/* Iterates over a validated object or array. Start with *at = 0; false at the end. Keys are
 * returned as JSON_STRING values (quoted, still escaped). */
bool json_object_next(struct json_value object, size_t *at, struct json_value *ret_key,
                      struct json_value *ret_value);
bool json_array_next(struct json_value array, size_t *at, struct json_value *ret_item);

/* Does a key value (quoted, maybe escaped) equal this plain name? */
bool json_key_is(struct json_value key, const char *name);
/* The last member of that name; false when absent. */
bool json_get(struct json_value object, const char *name, struct json_value *ret);
/* The same; {0}, whose p is NULL, when it is absent or null, or when that is no object. */
struct json_value json_member(struct json_value object, const char *name);

/* Appends the decoded string (may contain NUL). -1 when the buffer is full (out->failed), or at a
 * lone surrogate without JSON_LENIENT_UTF8 (out is then as it was). */
must_check int json_decode_string(struct json_value v, unsigned flags, struct buf *out);
/* Integers: also 2.0 and 2e3 are integers; anything with a fraction or out of range is not. */
bool json_to_int(struct json_value v, int64_t *ret);
bool json_to_double(struct json_value v, double *ret);
bool json_to_bool(struct json_value v, bool *ret);
const char *json_type_name(enum json_type t);
