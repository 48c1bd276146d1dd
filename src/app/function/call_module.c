/* SPDX-License-Identifier: MIT */
/* The parts of a call that only WebAssembly has: is the engine there, and modules of the caller's.
 */
#include "app/function/call_module.h"

#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/call_compile.h"
#include "app/function/compile_cache.h"
#include "base/base64.h"
#include "lang/lang_wasm.h"

static const char magic[] = {'\0', 'a', 's', 'm', 1, 0, 0, 0};

int wasm_check(const struct app *a, const struct jail *j, enum plan_template t, struct err *e)
{
    if (!a->config.wasm)
        return err_set(e, ERR_CALLER,
                       "the engine 'wasm' is not available: it is switched off (WASM=true)");
    if (j->templates >> TEMPLATE_WASM_FIRST == 0)
        return err_set(
            e, ERR_CALLER,
            "the engine 'wasm' is not available: it needs the jail 'native' and Node.js");
    if (!(j->templates & BIT(t)))
        return err_set(e, ERR_CALLER,
                       "the engine 'wasm' is not available for this language: its runtime is not "
                       "in WASM_PATH (tools/fetch-wasm)");
    return 0;
}

int call_wasm_check(const struct app *a, const struct jail *j, enum call_lang_id lang,
                    struct err *e)
{
    const char *missing = lang_wasm_compiler_missing(lang);

    if (!template_is_wasm(lang_wasm_template(lang)))
        return err_set(e, ERR_CALLER, "the engine 'wasm' does not know %s", call_lang(lang)->name);
    if (wasm_check(a, j, lang_wasm_template(lang), e) < 0)
        return -1;
    if (missing)
        return err_set(e, ERR_CALLER,
                       "the engine 'wasm' is not available for this language: the package %s is "
                       "missing",
                       missing);
    return 0;
}

/* Only the envelope is looked at; what is in the module is V8's business, inside a sandbox. */
static int decode(struct call *c, struct err *e)
{
    struct buf *out = &c->build->program;

    if (base64_decode(c->request.code.p, c->request.code.n, out) < 0)
        return err_set(e, ERR_CALLER,
                       "code: should be a WebAssembly module in base64, at most %d "
                       "bytes of it",
                       COMPILE_PROGRAM_MAX);
    if (out->n < sizeof magic || memcmp(out->p, magic, sizeof magic) != 0)
        return err_set(e, ERR_CALLER,
                       "code: this is no WebAssembly module: it does not begin with \\0asm and "
                       "version 1");
    return 0;
}

int call_module_prepare(struct call *c, struct err *e)
{
    struct call_build *b = calloc(1, sizeof *b);

    if (!b)
        return err_set(e, ERR_HOST, "out of memory");
    c->build = b;
    b->program = BUF_INIT(COMPILE_PROGRAM_MAX + 1);
    if (c->args.names_n > 0)
        return err_set(e, ERR_CALLER, "arguments of a module have no names");
    return decode(c, e);
}
