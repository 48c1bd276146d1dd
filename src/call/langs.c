/* SPDX-License-Identifier: MIT */
#include "call/langs.h"

#include <string.h>

static const struct call_lang langs[] = {
#define ALIASES(...)                                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NO_ALIASES                                                                                 \
    {                                                                                              \
        NULL                                                                                       \
    }
#define CALL_LANG(word, id, aliases, inspect, file, flags, start, wasm, literals)                  \
    [CALL_##id] = {#word, aliases, inspect, file, flags},
#include "call/langs.def"
#undef CALL_LANG
#undef NO_ALIASES
#undef ALIASES
};

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
