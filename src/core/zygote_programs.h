/* SPDX-License-Identifier: MIT */
/* What warms a template's interpreter, and where the host has it: one row for each template, and
 * the paths that a program of ours executes or imports by name. Pure. */
#pragma once

#include "core/plan_parts.h"

#define INTERPRETER_PYTHON "/usr/bin/python3"
#define INTERPRETER_NODE   "/usr/bin/node"
#define MODULE_IPYTHON     "/usr/lib/python3/dist-packages/IPython/__init__.py"

/* NULL, each: it needs none. */
struct zygote_program {
    const char *program;   /* of ours, beside the launcher: it becomes the zygote */
    const char *companion; /* what that loads from there */
    const char *needs;     /* what it executes or imports, beside its own */
    const char *role;      /* what it is told to be */
    const char *runtime;   /* the file that it then needs of the directory of runtimes */
};
extern const struct zygote_program zygote_programs[TEMPLATE_COUNT];

/* Where installing a package leaves a trace: a directory that is there, and the name in it whose
 * time of change tells. */
enum { PACKAGE_TRACES = 4 };
struct package_trace {
    const char *directory, *name;
};
extern const struct package_trace package_traces[PACKAGE_TRACES];
