/* SPDX-License-Identifier: MIT */
/* What a run of code has called: a row for each call, and the rows of runs that have ended. Pure.
 */
#pragma once

#include "app/tools/code_run.h"

/* A call that has ended. All borrowed. */
struct code_note {
    const char *tool;
    uint64_t us;
    bool ok;
    struct bytes arguments; /* JSON; n == 0: none */
    struct bytes answer;    /* members of its answer: "ok", and "value" or "error" */
    size_t bytes_out;       /* of the value */
};

struct code_journal {
    struct buf rows;  /* owned: whole, with arguments and values, each with a comma in front */
    struct buf shown; /* owned: without them, of the first CODE_SHOWN_MAX */
    size_t n;
};

void code_journal_init(struct code_journal *j);
void code_journal_done(struct code_journal *j);
void code_journal_note(struct code_journal *j, const struct code_note *n);
/* The short rows as an array; nothing where there are none. */
void code_journal_write(const struct code_journal *j, struct buf *out);
/* The oldest ones give way. The rows are taken. */
void code_journal_keep(struct code_journals *all, struct code_journal *j, const char *id);
