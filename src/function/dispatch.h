/* SPDX-License-Identifier: MIT */
/*
 * The dispatcher of a compiled language: a few lines of C or C++ that take JSON arguments apart,
 * call one function and write down what it returned (lang/wrap/call_c.inc has the words for it).
 * Pure. Everything about the function comes from its declaration, as the inspector read it.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/plan.h"
#include "function/args.h"
#include "function/signature.h"

enum { DISPATCH_MAX = 256 * 1024 };

struct dispatch {
    bool cpp;
    bool body; /* the code is the body of a function without parameters */
    struct bytes function;
    const struct call_signature *signature;
    struct json_value output; /* schema of the result; p == NULL: none */
};

/* The text behind the program's own. -1: the function cannot be called; the words say why. */
must_check int dispatch_write(const struct dispatch *d, struct buf *out, struct err *e);
/* The same for all functions that can be called, by name: the program of a session. */
must_check int dispatch_session(bool cpp, struct json_value inspected, struct buf *out,
                                struct err *e);
/* The program's own text, made a function where it is only a body. */
void dispatch_code(const struct dispatch *d, struct bytes code, struct buf *out);
/* Every position is filled or may be left out, no name is left over. Fills defaults in gaps. */
must_check int dispatch_bind(struct call_args *a, const struct call_signature *s, struct err *e);
/* What a body returns, by the request's schema: as the inspector would say it. */
struct json_value dispatch_body_result(struct json_value schema);
