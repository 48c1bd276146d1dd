/* SPDX-License-Identifier: MIT */
#include "core/zygote_programs.h"

#include <stddef.h>

#define NODE   "sandbox-zygote-node", "sandbox-zygote-node.node", INTERPRETER_NODE
#define PYTHON "sandbox-zygote-python", NULL, NULL

/* clang-format off */
const struct zygote_program zygote_programs[TEMPLATE_COUNT] = {
    [TEMPLATE_PYTHON]          = {PYTHON, NULL,       NULL},
    [TEMPLATE_NODE]            = {NODE, NULL,         NULL},
    [TEMPLATE_PYTHON_SCIENCE]  = {PYTHON, "science",  NULL},
    [TEMPLATE_PYTHON_CELLS]    = {"sandbox-zygote-python", "cells_python.py", MODULE_IPYTHON, "cells", NULL},
    [TEMPLATE_SHELL]           = {"sandbox-shell.so", NULL, NULL, NULL, NULL}, /* init/prestart.c */
    [TEMPLATE_WASM_PYTHON]     = {NODE, "python",     "python-3.11.3.wasm"},
    [TEMPLATE_WASM_RUBY]       = {NODE, "ruby",       "ruby-3.2.0.wasm"},
    [TEMPLATE_WASM_PHP]        = {NODE, "php",        "php-cgi-8.2.0.wasm"},
    [TEMPLATE_WASM_JAVASCRIPT] = {NODE, "javascript", "wasmedge_quickjs.wasm"},
    [TEMPLATE_WASM_MODULE]     = {NODE, "module",     NULL},
};

const struct package_trace package_traces[PACKAGE_TRACES] = {
    {"/var/lib/dpkg",             "status"       },
    {"/usr/local/lib/python3.11", "dist-packages"},
    {"/usr/local/lib",            "node_modules" },
    {"/usr/local",                "bin"          },
};
/* clang-format on */
