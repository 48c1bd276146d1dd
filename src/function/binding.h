/* SPDX-License-Identifier: MIT */
/*
 * Which function is meant, and which argument goes where: from a request, what is known of the
 * code's functions, and the rules of a language to what the wrapper is told. Pure. Errors name
 * themselves as the caller hears them (err.h).
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "function/args.h"
#include "function/request.h"
#include "function/signature.h"

struct binding {
    struct bytes function;        /* p == NULL: the wrapper finds it */
    char name[CALL_NAME_MAX + 1]; /* when it was found */
    bool body;                    /* the code is the body of the function */
    struct call_args args;
    struct call_signature *signature; /* owned; NULL: not needed any more */
    enum signature_source source;
    int options_at; /* javascript: where what is left by name goes; -1: behind the others */
};

/* The function that was named, and the schema of the request if it has one. */
must_check int binding_begin(struct binding *b, const struct call_request *r, struct err *e);
void binding_done(struct binding *b);

/* Is anything asked that only the inspector can tell? Wrappers of languages that know their own
 * functions bind by themselves. */
bool binding_needs_inspector(const struct binding *b, unsigned lang_flags,
                             const struct call_request *r);
/* The function that is meant, by what the inspector says: {0} where it lists none of that name.
 * Without a name it becomes the only one there is, or the code as a body. */
must_check int binding_find(struct binding *b, unsigned lang_flags, struct json_value inspected,
                            struct json_value *ret_function, struct err *e);
/* Can it be called? Of compiled languages only. */
must_check int binding_check(const struct binding *b, struct json_value function, struct err *e);
/* Its parameters by its declaration, where the request has no schema. */
must_check int binding_infer(struct binding *b, struct json_value function, struct err *e);
/* Arguments to parameters. */
must_check int binding_args(struct binding *b, enum call_lang_id lang, const struct call_request *r,
                            struct err *e);
/* C and C++, after that: once more, by the declaration. A body has none. */
must_check int binding_declared(struct binding *b, unsigned lang_flags,
                                const struct call_request *r, struct json_value function,
                                struct err *e);
