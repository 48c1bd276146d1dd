/* SPDX-License-Identifier: MIT */
#include "core/languages.h"

#include <string.h>

#include "core/zygote_programs.h"

/* clang-format off */
static const struct call_lang langs[] = {
    [CALL_PYTHON] = {
        .name = "python",
        .alias = {"python3", "py"},
        .ending = {".py"},
        .flags = LANGUAGE_EXECUTE | LANGUAGE_FUNCTION | CALL_HANDLED | CALL_KEYWORDS |
                 CALL_REFLECTS | CALL_SURROGATES | CALL_SESSIONS | CALL_RELOADS,
        .inspect = "python",
        .interpreter = INTERPRETER_PYTHON,
        .wasm = TEMPLATE_WASM_PYTHON,
        .file = "user_code.py",
        .literals = {.null = "None", .yes = "True", .no = "False", .open = "{", .close = "}",
                     .arrow = ": ", .expanded = "", .control_u = true, .controls = "bfnrt"},
    },
    [CALL_JAVASCRIPT] = {
        .name = "javascript",
        .alias = {"js", "quickjs", "node", "nodejs"},
        .ending = {".js", ".mjs", ".cjs"},
        .flags = LANGUAGE_EXECUTE | LANGUAGE_FUNCTION | CALL_HANDLED | CALL_INT53 |
                 CALL_SURROGATES | CALL_SESSIONS | CALL_RELOADS,
        .inspect = "javascript",
        .interpreter = INTERPRETER_NODE,
        .wasm = TEMPLATE_WASM_JAVASCRIPT,
        .file = "user_code.js",
        .place = ".sandbox-code.mjs",
        .literals = {.null = "null", .yes = "true", .no = "false", .open = "{", .close = "}",
                     .arrow = ": ", .expanded = "", .control_u = true, .controls = "bfnrt", .computed_proto = true},
    },
    [CALL_RUBY] = {
        .name = "ruby",
        .alias = {"rb"},
        .ending = {".rb"},
        .flags = LANGUAGE_FUNCTION | CALL_KEYWORDS | CALL_REFLECTS | CALL_SESSIONS,
        .inspect = "ruby",
        .interpreter = "/usr/bin/ruby",
        .args = {"--disable=gems", "-e"}, /* gems are half of the time to start */
        .reads = "RUBY",
        .template = TEMPLATE_RUBY,
        .wasm = TEMPLATE_WASM_RUBY,
        .file = "user_code.rb",
        .literals = {.null = "nil", .yes = "true", .no = "false", .open = "{", .close = "}",
                     .arrow = " => ", .expanded = "#$", .control_u = true, .controls = "bfnrt"},
    },
    [CALL_PHP] = {
        .name = "php",
        .ending = {".php"},
        .flags = LANGUAGE_FUNCTION | CALL_KEYWORDS | CALL_REFLECTS | CALL_INT64 | CALL_SESSIONS,
        .inspect = "php",
        .interpreter = "/usr/bin/php",
        .args = {"-n", "-r"}, /* no configuration of the host's */
        .reads = "PHP",
        .template = TEMPLATE_PHP,
        .wasm = TEMPLATE_WASM_PHP,
        .file = "user_code.php",
        .place = "user_code.php",
        .literals = {.null = "null", .yes = "true", .no = "false", .open = "[", .close = "]",
                     .arrow = " => ", .expanded = "$", .controls = "fnrt", .least = "(-9223372036854775807-1)"},
    },
    [CALL_C] = {
        .name = "c",
        .alias = {"clang"},
        .ending = {".c"},
        .flags = LANGUAGE_FUNCTION | CALL_COMPILED | CALL_SESSIONS,
        .inspect = "c",
        .interpreter = "/usr/bin/gcc",
        .wasm = TEMPLATE_WASM_MODULE,
        .file = "user_code.c",
    },
    [CALL_CPP] = {
        .name = "cpp",
        .alias = {"c++", "clangpp", "cxx"},
        .ending = {".cpp", ".cc", ".cxx"},
        .flags = LANGUAGE_FUNCTION | CALL_COMPILED | CALL_SESSIONS,
        .inspect = "cpp",
        .interpreter = "/usr/bin/g++",
        .wasm = TEMPLATE_WASM_MODULE,
        .file = "user_code.cpp",
    },
    [CALL_PERL] = {
        .name = "perl",
        .alias = {"pl", "perl5"},
        .ending = {".pl"},
        .flags = LANGUAGE_FUNCTION | CALL_KEYWORDS | CALL_REFLECTS | CALL_INT64 | CALL_DETECTS,
        .interpreter = "/usr/bin/perl",
        .args = {"-e"},
        .reads = "PERL",
        .template = TEMPLATE_PERL,
        .file = "user_code.pl",
        .literals = {.null = "undef", .yes = "!!1", .no = "!!0", .open = "{", .close = "}",
                     .arrow = " => ", .expanded = "$@", .controls = "bfnrt"},
    },
    [CALL_WASM] = {
        .name = "wasm",
        .alias = {"webassembly"},
        .ending = {".wasm"},
        .flags = LANGUAGE_FUNCTION | CALL_MODULE,
        .interpreter = INTERPRETER_NODE,
        .wasm = TEMPLATE_WASM_MODULE,
        .file = "module.wasm",
    },
    [CALL_SHELL] = {
        .name = "shell",
        .alias = {"bash", "sh"},
        .ending = {".sh"},
        .flags = LANGUAGE_EXECUTE,
        .interpreter = "/bin/bash",
        .template = TEMPLATE_SHELL,
    },
};
/* clang-format on */
_Static_assert(ARRAY_LEN(langs) == LANGUAGE_COUNT, "every language has a row");

const struct call_lang *language(size_t i)
{
    return i < ARRAY_LEN(langs) ? &langs[i] : NULL;
}

static bool is(const char *name, const char *p, size_t n)
{
    return name && strlen(name) == n && memcmp(name, p, n) == 0;
}

static bool has_name(const struct call_lang *l, const char *name, size_t n)
{
    if (is(l->name, name, n))
        return true;
    for (size_t k = 0; k < CALL_ALIASES_MAX; k++)
        if (is(l->alias[k], name, n))
            return true;
    return false;
}

int language_find(const char *name, size_t n, unsigned flags)
{
    for (size_t i = 0; i < ARRAY_LEN(langs); i++)
        if (langs[i].flags & flags && has_name(&langs[i], name, n))
            return (int)i;
    return -1;
}

const struct call_lang *language_of_template(enum plan_template t)
{
    for (size_t i = 0; t != TEMPLATE_EXEC && i < ARRAY_LEN(langs); i++)
        if (langs[i].template == t)
            return &langs[i];
    return NULL;
}

const struct call_lang *call_lang(size_t i)
{
    return i < CALL_LANG_COUNT ? &langs[i] : NULL;
}

int call_lang_find(const char *name, size_t n)
{
    return language_find(name, n, LANGUAGE_FUNCTION);
}
