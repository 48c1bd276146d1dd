/* SPDX-License-Identifier: MIT */
/*
 * A function call becomes a plan: the wrapper of its language (wrap/call_*) is the program, what to
 * call is its event, the arguments travel in the mode that was chosen.
 */
#pragma once

#include "core/languages.h"
#include "core/plan.h"
#include "function/args.h"
#include "function/request.h"
#include "function/rights.h"

struct lang_call {
    const char *id; /* of the call: [A-Za-z0-9._-] */
    enum call_lang_id lang;
    const struct call_request *request; /* borrowed by the plan, with all it points to */
    struct bytes function;              /* p == NULL: the wrapper finds it */
    bool body;                          /* the code is the body of a function */
    bool stream;                        /* items of a generator one by one */
    bool stays;        /* a session: calls come later, as packets; there are no arguments now */
    const char *token; /* of a session: what its first answer begins with */
    int options_at;    /* javascript: where what is left by name goes; -1: behind the others */
    enum call_mode mode;
    const struct call_args *args;
    const char *const *made; /* directories to be there, ending in a slash; borrowed by the plan */
    size_t made_n;
    const struct call_rights *rights; /* borrowed by the plan; NULL: everything may be written */
    const char *dirs;                 /* as in the plan; NULL: none */
    const struct plan_lazy *lazy;     /* the same; then the request's files of a host are lent */
    struct bytes program;             /* compiled languages: what was made; borrowed by the plan */
    const char *packages;             /* as `dependencies` of the plan; NULL: none */
    bool wasm;                        /* the engine; always for modules */
    struct limits limits;
};

/* The files that are there before the run are those of the plan. */
must_check int lang_call_plan(const struct lang_call *c, struct plan **ret, struct err *e);
void lang_call_free(struct plan *p); /* NULL is fine */

/* Is what runs the language here? */
bool lang_call_available(enum call_lang_id lang);
/* The name of a file that a wrapper leaves in a fenced working directory; NULL: none. */
const char *lang_call_place(enum call_lang_id lang, bool wasm);
/* Which mode auto means for these arguments. */
enum call_mode lang_call_mode(const struct call_request *r, size_t bytes);

/* How a program is made of code: one plan for the compiler. */
struct lang_compile {
    const char *id;
    enum call_lang_id lang;
    const char *std;               /* "": the compiler's default */
    const struct call_file *files; /* what the code may include; borrowed by the plan */
    size_t files_n;
    const char *dirs;              /* as in the plan; NULL: none */
    const char *workdir;           /* where included files are, too; borrowed by the plan */
    struct bytes code, dispatcher; /* borrowed by the plan */
    bool wasm;                     /* compile to WebAssembly */
    struct limits limits;
};
/* The command line of the compiler. Together with the texts it decides what the program will be. */
enum { LANG_COMPILE_STD = 24, LANG_COMPILE_ARGS = 32 };
struct lang_compile_args {
    const char *arg[LANG_COMPILE_ARGS]; /* borrowed, also from this struct */
    char std[LANG_COMPILE_STD];
};
size_t lang_compile_args(const struct lang_compile *c, struct lang_compile_args *out);
must_check int lang_compile_plan(const struct lang_compile *c, struct plan **ret, struct err *e);
void lang_compile_free(struct plan *p); /* NULL is fine */
const char *lang_compiler(enum call_lang_id lang, bool wasm);
/* What the compiler leaves in the workspace. */
extern const char lang_compiled_name[];
