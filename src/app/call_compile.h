/* SPDX-License-Identifier: MIT */
/* The part of a call that makes a program of C or C++ first, or finds it made. */
#pragma once

#include "app/call.h"
#include "base/sha256.h"

/* Everything about the program of one call. */
struct call_build {
    struct buf code, dispatcher; /* owned */
    struct buf program;          /* owned; empty: not made yet */
    char key[SHA256_HEX];
    struct limits limits;
    struct run_result result;
    bool too_large;
};

/* Writes the dispatcher and looks the program up. -1: the function cannot be called. */
must_check int call_build_prepare(struct call *c, struct err *e);
/* Runs the compiler; call_built() follows, from the loop. */
must_check int call_build_start(struct call *c, struct err *e);
void call_build_free(struct call_build *b); /* NULL is fine */

/* call.c: the compiler has ended; c->build->program is there, or its result tells why not. */
void call_built(struct call *c);
