/* SPDX-License-Identifier: MIT */
/*
 * How a program of C or C++ is made of code and a dispatcher: what the compiler is given, its plan,
 * and what it left. Programs are kept by a hash of everything they were made of (compile_cache.h).
 * A WebAssembly module of the caller's is a program that needs no compiler.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/limits.h"
#include "core/plan.h"
#include "core/port_run.h"

struct program;

struct build {
    struct program *whose;       /* borrowed */
    struct buf code, dispatcher; /* owned: the text of the program, and what calls it */
    struct buf made;             /* owned: the program; empty: not made yet */
    char key[SHA256_HEX];
    struct limits limits;
    struct run_result result; /* of the compiler */
    bool too_large;
};

/* Code and dispatcher are to be written. NULL: no memory. */
must_check struct build *build_new(struct program *p);
void build_free(struct build *b); /* NULL is fine */

/* Both are written: is the program there already? */
must_check int build_look_up(struct build *b, struct err *e);
/* The module of the request. */
must_check int build_take_module(struct build *b, struct err *e);

/* The compiler; the plan is freed by lang_compile_free(). */
must_check int build_plan(struct build *b, struct plan **ret, struct err *e);
/* What it left in the workspace: the program among it. */
void build_on_file(struct build *b, struct run_file *f);
/* It has ended: keeps the program, or tells why there is none. */
must_check int build_end(struct build *b, struct err *e);
