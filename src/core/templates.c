/* SPDX-License-Identifier: MIT */
#include "core/templates.h"

#include "core/config.h"

#define POOL(option) offsetof(struct config, option)

/* clang-format off */
const struct template templates[TEMPLATE_COUNT] = {
    [TEMPLATE_EXEC]            = {"exec",               1,  POOL(pool_exec)   },
    [TEMPLATE_PYTHON]          = {"python",             2,  POOL(pool_python) },
    [TEMPLATE_NODE]            = {"node",               12, POOL(pool_node)   },
    [TEMPLATE_PYTHON_SCIENCE]  = {"python-datascience", 5,  POOL(pool_science)},
    [TEMPLATE_PYTHON_CELLS]    = {"python-cells",       8,  POOL(pool_cells)  },
    [TEMPLATE_SHELL]           = {"shell",              2,  POOL(pool_exec)   },
    [TEMPLATE_RUBY]            = {"ruby",               16, POOL(pool_scripts)},
    [TEMPLATE_PHP]             = {"php",                16, POOL(pool_scripts)},
    [TEMPLATE_PERL]            = {"perl",               8,  POOL(pool_scripts)},
    [TEMPLATE_WASM_PYTHON]     = {"wasm-python",        24, POOL(pool_wasm)   },
    [TEMPLATE_WASM_RUBY]       = {"wasm-ruby",          24, POOL(pool_wasm)   },
    [TEMPLATE_WASM_PHP]        = {"wasm-php",           24, POOL(pool_wasm)   },
    [TEMPLATE_WASM_JAVASCRIPT] = {"wasm-javascript",    24, POOL(pool_wasm)   },
    [TEMPLATE_WASM_MODULE]     = {"wasm-module",        24, POOL(pool_wasm)   },
};
/* clang-format on */
