/* SPDX-License-Identifier: MIT */
#pragma once

#include "app/function/call.h"

/* Can that template be run in that jail? -1 with the reason. */
must_check int wasm_check(const struct app *a, const struct jail *j, enum plan_template t,
                          struct err *e);
/* Can functions of that language be called in WebAssembly there? -1 with the reason. */
must_check int call_wasm_check(const struct app *a, const struct jail *j, enum call_lang_id lang,
                               struct err *e);
/* The module of the request becomes the program of the call. */
must_check int call_module_prepare(struct call *c, struct err *e);
