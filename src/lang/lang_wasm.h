/* SPDX-License-Identifier: MIT */
/*
 * Plans for the engine 'wasm'. The process that runs them is a copy of a zygote (wasm) that
 * executes nothing; argv is what it is told: "wasm", pages of memory, directories that are writable
 * beside the usual ones, and for modules the file that the module is in and what kind it is of.
 */
#pragma once

#include "core/languages.h"
#include "lang/lang_job.h"

enum lang_wasm_kind {
    LANG_WASM_RUNTIME, /* a language's interpreter */
    LANG_WASM_PROGRAM, /* compiled from C, with our wrapper in it */
    LANG_WASM_FOREIGN, /* a module of the caller's own */
};

/* Makes a job that is otherwise complete one for WebAssembly. `dirs` and `program` are borrowed by
 * the plan; NULL: none. */
void lang_wasm_job(struct lang_job *j, enum plan_template t, enum lang_wasm_kind kind,
                   const char *dirs, const char *program);

/* A handler: POST /execute. Python and JavaScript only. */
lang_plan_fn lang_wasm_plan;

/* Which template runs a function of that language; TEMPLATE_EXEC: there is none. */
enum plan_template lang_wasm_template(enum call_lang_id lang);
/* What C and C++ are compiled with for WebAssembly: NULL when it is all there, else what is
 * missing. */
const char *lang_wasm_compiler_missing(enum call_lang_id lang);
