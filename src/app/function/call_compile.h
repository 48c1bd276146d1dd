/* SPDX-License-Identifier: MIT */
/* The part of a call that makes a program of C or C++ first, or finds it made. */
#pragma once

#include "app/function/call.h"
#include "base/sha256.h"

/* Everything about one program; what it is made for is borrowed. */
struct call_build {
    struct app *app;
    struct run_engine *engine; /* borrowed: of the jail that compiles */
    const char *id;
    enum call_lang_id lang;
    bool wasm; /* the engine */
    const struct call_request *request;
    void (*done)(void *user); /* the compiler has ended */
    void *user;
    struct run *run;             /* owned: the compiler, while it runs */
    struct buf code, dispatcher; /* owned */
    struct buf program;          /* owned; empty: not made yet */
    char key[SHA256_HEX];
    struct limits limits;
    struct run_result result;
    bool too_large;
};

must_check struct call_build *call_build_new(struct app *a, const char *id, int lang,
                                             const struct call_request *request);
void call_build_free(struct call_build *b); /* NULL is fine */
/* Code and dispatcher are written: is the program there already? */
must_check int call_build_seal(struct call_build *b, struct err *e);
/* Runs the compiler; done() follows, from the loop: the program is there, or the result tells why
 * not. dirs: as in a plan; NULL: none. */
must_check int call_build_start(struct call_build *b, const char *dirs, struct err *e);
/* Why there is no program: the compiler's own words where it has some. */
void call_build_failure(const struct call_build *b, char *out, size_t n);

/* Of a call: writes the dispatcher and seals it. -1: the function cannot be called. */
must_check int call_build_prepare(struct call *c, struct err *e);
