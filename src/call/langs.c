/* SPDX-License-Identifier: MIT */
#include "call/langs.h"

#include <string.h>

/* clang-format off */
static const struct call_lang langs[] = {
    [CALL_PYTHON] = {"python", {"python3", "py"}, "python", "user_code.py",
                     CALL_KEYWORDS | CALL_REFLECTS | CALL_SURROGATES | CALL_SESSIONS |
                         CALL_RELOADS},
    [CALL_JAVASCRIPT] = {"javascript", {"js", "quickjs", "node"}, "javascript", "user_code.js",
                         CALL_INT53 | CALL_SURROGATES | CALL_SESSIONS | CALL_RELOADS},
    [CALL_RUBY] = {"ruby", {"rb"}, "ruby", "user_code.rb",
                   CALL_KEYWORDS | CALL_REFLECTS | CALL_SESSIONS},
    [CALL_PHP] = {"php", {NULL}, "php", "user_code.php",
                  CALL_KEYWORDS | CALL_REFLECTS | CALL_INT64 | CALL_SESSIONS},
    [CALL_C] = {"c", {"clang"}, "c", "user_code.c", CALL_COMPILED | CALL_SESSIONS},
    [CALL_WASM] = {"wasm", {"webassembly"}, NULL, "module.wasm", CALL_MODULE},
    [CALL_CPP] = {"cpp", {"c++", "clangpp"}, "cpp", "user_code.cpp",
                  CALL_COMPILED | CALL_SESSIONS},
    [CALL_PERL] = {"perl", {"pl", "perl5"}, NULL, "user_code.pl",
                   CALL_KEYWORDS | CALL_REFLECTS | CALL_INT64 | CALL_DETECTS},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(langs) == CALL_LANG_COUNT, "every language has a row");

const struct call_lang *call_lang(size_t i)
{
    return i < ARRAY_LEN(langs) ? &langs[i] : NULL;
}

static bool is(const char *name, const char *p, size_t n)
{
    return name && strlen(name) == n && memcmp(name, p, n) == 0;
}

int call_lang_find(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(langs); i++) {
        if (is(langs[i].name, name, n))
            return (int)i;
        for (size_t k = 0; k < CALL_ALIASES_MAX; k++)
            if (is(langs[i].alias[k], name, n))
                return (int)i;
    }
    return -1;
}
