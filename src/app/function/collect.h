/* SPDX-License-Identifier: MIT */
/*
 * What was done to the files: open files come in one by one, changes and what the rules say of them
 * come out. The same for a call, whose program is dead by then, and for a turn of a session, whose
 * program lives on.
 */
#pragma once

#include <stdbool.h>

#include "app/function/call_mount.h"
#include "core/languages.h"
#include "core/port_run.h"
#include "core/port_work.h"
#include "function/changes.h"
#include "function/outcome.h"

struct collect {
    struct work judging;          /* first */
    struct work_pool *work;       /* borrowed */
    struct run **run;             /* borrowed: whose files they are; it may be gone */
    const struct call_tree *tree; /* borrowed */
    const char *workdir;          /* borrowed */
    const char *place;            /* a file of the wrapper's own in it; NULL: none */
    bool from_top;                /* names begin at "/" and not at "/workspace" */
    bool contents;                /* they are wanted */
    bool fenced;                  /* the kernel refuses what is not allowed */
    void (*next)(void *user);     /* a worker has given it back */
    void *user;

    struct changes changes;
    bool thrown;             /* a change was denied and that is an error */
    bool beside;             /* a worker has it, to read a file or to judge; then comes next() */
    bool complete;           /* changes and what the rules say of them are known */
    const struct buf *error; /* borrowed: what the program said */
    int refused;             /* enum change_type that the rules refuse where it says; -1: none */
    uint64_t steps;          /* left to ask the rules, see function/glob.h */
};

/* Of whom. Everything is borrowed. */
struct collect_order {
    struct work_pool *work;
    struct run **run;
    const struct call_tree *tree;
    const struct call_request *request;
    enum call_lang_id lang;
    bool wasm, fenced;
    bool dirs;     /* there are directories beside /workspace */
    bool contents; /* they are wanted */
    const struct call_file *before;
    size_t before_n;
    void (*next)(void *user);
    void *user;
};
/* -1: out of memory. */
must_check int collect_begin(struct collect *k, const struct collect_order *o);
/* A file is there now. A large one is read beside the loop, and no more come meanwhile. */
void collect_file(struct collect *k, struct run_file *f);
/* All have come and none is being read: what is missing was deleted, unless some were left out,
 * which may be those; the rules are asked. `error`: what the program said, kept until the end.
 * False: that is done beside the loop, and then comes next(). */
must_check bool collect_complete(struct collect *k, int64_t left_out, const struct buf *error);
/* On a worker: do the rules refuse what the program complains about? */
void collect_refusal(struct collect *k);
/* onPermissionDenied "throw": what was refused inside, or found among the changes, is the error. */
void collect_judge(struct collect *k, struct call_outcome *o);
void collect_done(struct collect *k);
