/* SPDX-License-Identifier: MIT */
/*
 * What was asked for: one piece of code, what it is to be given and how much it
 * may use. The HTTP layer fills it in, a language turns it into a plan.
 * Everything is borrowed; a plan made from it borrows nothing back.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/sha256.h"
#include "core/limits.h"
#include "core/plan.h"

enum { EXEC_VAR_MAX = 128 * 1024 - 1 }; /* bytes of name, '=' and value: the kernel's limit */

/* One environment variable. Lengths are explicit, so a NUL inside can be seen and refused. */
struct exec_var {
    struct bytes name, value;
};

/* A kernel takes every name without '='; with control characters lists of them mislead. */
static inline bool exec_var_is_name(struct bytes name)
{
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] == '=' || (unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f)
            return false;
    return name.n > 0;
}

/* Is the function `handler` of a program to be called? In order of the words of the API. */
enum exec_mode {
    EXEC_EITHER,  /* if the program defines one; else it is a script (but see lang/lang_job.h) */
    EXEC_HANDLER, /* yes: a program without one has failed */
    EXEC_SCRIPT,  /* no, even if there is one */
};

/* A file that is there when the program starts. */
struct exec_file {
    struct bytes path; /* below the workspace, without a leading '/'; NUL-terminated */
    struct bytes content;
    char sha256[SHA256_HEX];
};

struct exec_spec {
    const char *execution_id;  /* well formed: [A-Za-z0-9._-]{1,128}, no leading dot */
    const char *language;      /* a name or alias from lang/runners.c */
    const char *function_name; /* NULL: "handler"; only told to the program */
    enum exec_mode mode;       /* Python and JavaScript; shell programs are always scripts */
    struct bytes code;         /* UTF-8 */
    struct bytes compiled;     /* what it was compiled to before; p == NULL: not known */
    struct bytes event;        /* validated JSON text; p == NULL: none given */
    struct bytes input;        /* standard input; p == NULL: none given */
    const struct exec_var *vars;
    size_t vars_n;
    const struct exec_file *files;
    size_t files_n;
    const char *dependencies; /* directory inside, first on the module path; NULL: none */
    const char *node_modules; /* directory inside with packages of npm; NULL: none */
    const char *workspace;    /* NULL: a fresh one; else the name of a kept workspace */
    struct limits limits;     /* limits.wall_ms is the time limit */
    bool asks_compiled;       /* a wrapper that can is to tell what it is compiled to */
    bool cold;                /* never from a warmed interpreter */
    bool science;             /* Python: from the one that has numpy and pandas loaded */
    bool wasm;                /* the engine */
    bool no_event_vars;       /* the event is not for the program's environment */
};
