/* SPDX-License-Identifier: MIT */
/* What of a plan the launcher knows as well: templates, fixed names, the list of lent files. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Where a session's dependencies are mounted. */
#define PLAN_DEPENDENCIES "/opt/sandbox-venv"
/* The kept workspace that is WORKSPACE_PATH itself; the names of others have a prefix. */
#define PLAN_WORKSPACE_OWN "own"
enum { PLAN_LAZY_MAX = 16 };

/* The kind of warmed sandbox a plan wants to land in. */
enum plan_template {
    TEMPLATE_EXEC, /* nothing warmed: the sandbox execs argv */
    TEMPLATE_PYTHON,
    TEMPLATE_NODE,
    TEMPLATE_PYTHON_SCIENCE, /* with numpy, pandas and matplotlib, as far as they are installed */
    TEMPLATE_PYTHON_CELLS,   /* the same with IPython, in a persistent sandbox: for its contexts */
    /* interpreters that were started ahead and wait */
    TEMPLATE_SHELL,
    TEMPLATE_RUBY,
    TEMPLATE_PHP,
    TEMPLATE_PERL,
    /* WebAssembly: nothing else can run such a plan, so there is no argv to fall back to */
    TEMPLATE_WASM_PYTHON,
    TEMPLATE_WASM_RUBY,
    TEMPLATE_WASM_PHP,
    TEMPLATE_WASM_JAVASCRIPT,
    TEMPLATE_WASM_MODULE, /* a module that comes with the job */
    TEMPLATE_COUNT,
    TEMPLATE_PRESTARTED_FIRST = TEMPLATE_SHELL,
    TEMPLATE_WASM_FIRST = TEMPLATE_WASM_PYTHON,
};

static inline bool template_is_wasm(enum plan_template t)
{
    return t >= TEMPLATE_WASM_FIRST;
}

/* Started ahead: one that is not there yet is no sooner there than one that is started then. */
static inline bool template_is_prestarted(enum plan_template t)
{
    return t >= TEMPLATE_PRESTARTED_FIRST && t < TEMPLATE_WASM_FIRST;
}

/* Prepared only once somebody has asked for it: most never do, and each costs memory. */
static inline bool template_is_lazy(enum plan_template t)
{
    return t >= TEMPLATE_PYTHON_SCIENCE;
}

/* Sandboxes of it are persistent: the copy of the warmed interpreter in each forks programs. */
static inline bool template_is_persistent(enum plan_template t)
{
    return t == TEMPLATE_PYTHON_CELLS;
}

/*
 * The list of files that are lent (plan_lazy): rows one behind the other, each followed by its two
 * texts and their NULs. LAZY_MOUNT begins a directory, in the order of the descriptors; what
 * belongs to it follows.
 */
enum lazy_kind {
    LAZY_MOUNT, /* path: where it appears, from the top, without the first slash */
    LAZY_DIR,   /* path: below the place */
    LAZY_FILE,  /* path: the same; host: what it is below the host's directory */
};
enum { LAZY_LIST_MAX = 256 << 20, LAZY_TEXT_MAX = 4096 };

struct lazy_row {
    uint64_t size;
    uint32_t kind, mode;
    uint32_t path_n, host_n; /* without NUL */
};
