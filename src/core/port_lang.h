/* SPDX-License-Identifier: MIT */
/*
 * Port: languages. Each turns what was asked for into a plan; main hands the table to the app.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/exec_spec.h"
#include "core/plan.h"

/* What may be told about a language. All static or alive as long as the port. */
struct lang_fact {
    const char *name;    /* "python" */
    const char *version; /* of its interpreter, "" when unknown */
    bool available;      /* the interpreter is there */
};

struct lang_ops {
    /* Row i, or NULL behind the last one. */
    const struct lang_fact *(*fact)(size_t i);
    /* The row's number for a name or an alias; -1 when there is none. */
    int (*find)(const char *name);
    /* A plan that owns everything it points to. */
    int (*plan)(const struct exec_spec *s, struct plan **ret, struct err *e);
    void (*plan_free)(struct plan *p); /* NULL is fine */
};
