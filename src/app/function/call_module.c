/* SPDX-License-Identifier: MIT */
/* Is the engine 'wasm' there? */
#include "app/function/call_module.h"

#include "app/daemon/app.h"
#include "lang/lang_wasm.h"

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
