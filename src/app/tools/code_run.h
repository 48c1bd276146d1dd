/* SPDX-License-Identifier: MIT */
/*
 * Tools that are called by code in a sandbox: one run of code, what it may call, its budget, and
 * the journal of its calls.
 *
 * The code asks over the channel of its interpreter (src/lang/cells/cells_tools.py) and never has a
 * network or a credential. A name that the run does not allow is refused, whatever there is. What
 * the code sends is a tenant's: numbers, names and arguments are looked at here, sizes are bounded.
 *
 *   call ──allowed, within the budget──▶ WAITING ──fewer than CODE_CALLS_AT_ONCE──▶ under way
 *     └── refused: answered at once                                       └──▶ answered, noted
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/sandbox/cell_message.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "core/exec_spec.h"

struct app;
struct code_run;

enum {
    CODE_CALLS_AT_ONCE = 8,
    CODE_VALUE_MAX = 1 << 20,  /* bytes of the arguments, and of the value, of one call */
    CODE_BYTES_MAX = 16 << 20, /* of all arguments and values of a run */
    CODE_CALL_MS = 60 * 1000,  /* of one call */
    CODE_ALLOWED_MAX = 256,    /* names and patterns */
    CODE_FOUND_MAX = 100,      /* tools that a search tells */
    CODE_SHOWN_MAX = 50,       /* calls in the result of a run */
    CODE_NOTED_MAX = 64 << 10, /* bytes of arguments and of a value in the journal */
    CODE_NAME_MAX = 128,       /* of a tool */
    CODE_JOURNALS_MAX = 256,   /* runs whose journals are kept */
    CODE_JOURNALS_BYTES = 64 << 20,
};

struct code_run_events {
    /* An answer for the code, a JSON object. -1: it is gone. */
    int (*answer)(void *user, const char *json, size_t n);
    /* The code is to wait before it asks for more, or may go on. */
    void (*hold)(void *user, bool held);
    void *user;
};

/* The names end in '*' or are those of tools there are. -1: one is neither, or of none. */
must_check int code_run_new(struct app *a, const struct exec_var *allowed, size_t n,
                            const struct code_run_events *events, struct code_run **ret,
                            struct err *e);
/* What it asks for (app/sandbox/context.h). */
void code_run_asks(struct code_run *r, enum cell_ask what, const struct cell_message *m);
/* The code has ended: calls under way are cancelled, nothing is answered any more. */
void code_run_end(struct code_run *r);
/* {"tool", "ms", "ok", "bytes_in", "bytes_out"} of the first CODE_SHOWN_MAX calls, an array;
 * nothing where there were none. */
void code_run_write(const struct code_run *r, struct buf *out);
/* The journal is kept under this id of the run, unless nothing was called. */
void code_run_keep(struct code_run *r, const char *id);
void code_run_free(struct code_run *r); /* NULL is fine */

/* ---- journals that are kept ---- */

struct code_journals;
must_check int code_journals_new(struct code_journals **ret, struct err *e);
void code_journals_free(struct code_journals *j); /* NULL is fine */
/* A JSON array of all calls of a run; n == 0: there is none of that id. */
struct bytes code_journal_find(const struct code_journals *j, const char *id);
