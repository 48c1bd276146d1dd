/* SPDX-License-Identifier: MIT */
#include "lang/lang_wasm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 64 * 1024, PAGES_MAX = 64 * 1024 };

static const char *const kinds[] = {
    [LANG_WASM_RUNTIME] = "runtime",
    [LANG_WASM_PROGRAM] = "program",
    [LANG_WASM_FOREIGN] = "foreign",
};

void lang_wasm_job(struct lang_job *j, enum plan_template t, enum lang_wasm_kind kind,
                   const char *dirs, const char *program)
{
    uint64_t pages = j->plan.limits.memory_max / PAGE;

    if (pages == 0 || pages > PAGES_MAX)
        pages = PAGES_MAX;
    (void)snprintf(j->option, sizeof j->option, "%" PRIu64, pages);
    lang_job_arg(j, "wasm");
    lang_job_arg(j, j->option);
    lang_job_arg(j, dirs ? dirs : "");
    lang_job_arg(j, program ? program : "");
    lang_job_arg(j, kinds[kind]);
    j->plan.template = t;
}

int lang_wasm_plan(const struct exec_spec *s, struct lang_job **ret, struct err *e)
{
    cleanup_with(lang_job_freep) struct lang_job *j = NULL;
    int lang = call_lang_find(s->language, strlen(s->language));

    if (lang != CALL_PYTHON && lang != CALL_JAVASCRIPT)
        return err_set(e, ERR_CALLER, "'%.32s' does not run in WebAssembly", s->language);
    if (lang_job_new(s, &j, e) < 0 ||
        lang_job_frames(j, s, lang == CALL_PYTHON ? lang_python_mode(s) : s->mode, e) < 0)
        return -1;
    lang_wasm_job(j, lang_wasm_template((enum call_lang_id)lang), LANG_WASM_RUNTIME, NULL, NULL);
    *ret = take_ptr(&j);
    return 0;
}

enum plan_template lang_wasm_template(enum call_lang_id lang)
{
    return call_lang(lang)->wasm;
}

const char *lang_wasm_compiler_missing(enum call_lang_id lang)
{
    static const struct {
        const char *path, *package;
        bool cpp;
    } rows[] = {
        {"/usr/bin/clang",                   "clang",                  false},
        {"/usr/bin/wasm-ld",                 "lld",                    false},
        {"/usr/lib/wasm32-wasi/libc.a",      "wasi-libc",              false},
        {"/usr/lib/wasm32-wasi/libc++abi.a", "libc++abi-*-dev-wasm32", true },
        {"/usr/lib/wasm32-wasi/libc++.a",    "libc++-*-dev-wasm32",    true },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if ((lang == CALL_CPP || (lang == CALL_C && !rows[i].cpp)) &&
            access(rows[i].path, R_OK) < 0)
            return rows[i].package;
    return NULL;
}
