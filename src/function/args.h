/* SPDX-License-Identifier: MIT */
/*
 * Arguments: from what a request says to what a function is given. Pure.
 *
 * Three forms become two lists: positions, some of which may be empty, and names. An element
 * {"index": i, "value": v} (exactly these two members) stands at its position. Then a signature,
 * if there is one, moves names to positions. Values are views into the request, never copied.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "core/languages.h"
#include "function/signature.h"

enum { CALL_POSITIONS_MAX = 65536, CALL_NAMES_MAX = 4096 };

struct call_name {
    struct json_value key, value;
    uint64_t hash; /* of the key's text, however it is spelt */
};

struct call_args {
    struct json_value *at; /* owned; p == NULL: a hole */
    size_t n, cap;
    struct call_name *names; /* owned */
    size_t names_n, names_cap;
};

must_check int call_args_collect(struct call_args *a, struct json_value args,
                                 struct json_value kwargs, struct err *e);
/* Names to positions and defaults into holes, as the signature says. */
must_check int call_args_bind(struct call_args *a, const struct call_signature *s,
                              unsigned lang_flags, struct err *e);
/* schema.strict: is everything required there, and of its type? */
must_check int call_args_check(const struct call_args *a, const struct call_signature *s,
                               struct err *e);
/* Can the language represent every value? */
must_check int call_args_representable(const struct call_args *a, const struct call_lang *lang,
                                       struct err *e);
/* JavaScript: where what is left by name goes, so that the function finds its options; -1: behind
 * all others. */
int call_args_options_at(const struct call_args *a, const struct call_signature *s);
void call_args_done(struct call_args *a);

/* As JSON text; a hole becomes null. */
void call_args_json(const struct call_args *a, struct buf *out);
void call_names_json(const struct call_args *a, struct buf *out);
void call_holes_json(const struct call_args *a, struct buf *out); /* "[1,2]" */
bool call_args_has_holes(const struct call_args *a);
