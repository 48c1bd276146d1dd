/* SPDX-License-Identifier: MIT */
/*
 * Host directories in a call: what is in them is copied in before the run (eager), or listed and
 * lent (lazy, launcher/lazy.h), and changes go back afterwards if that was asked for. Only below
 * MOUNT_ROOTS, opened beneath those directories and never through a link that leads out. Everything
 * here blocks: on a worker only.
 *
 * Both ways see the same: one walk decides by rules, include, sizes and links which files there
 * are. What cannot be lent is copied, and the result says why.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/limits.h"
#include "core/plan.h"
#include "core/port_work.h"
#include "function/changes.h"
#include "function/mount.h"
#include "function/request.h"
#include "function/rights.h"

struct app;
struct place;

enum {
    TREE_WORDS_MAX = 160,
    TREE_LENT_MAX = 32768, /* files of a call that are lent, its directories included */
};

struct call_tree {
    struct mount mount;
    int fd[MOUNT_DIRS_MAX]; /* owned: the host directories; -1: not open */
    char **made;            /* owned, each: directories to be there, ending in a slash */
    size_t made_n;
    char **owned; /* owned, each: paths and contents that were loaded */
    size_t owned_n;
    bool lent;                    /* files are lent, not loaded */
    char refused[TREE_WORDS_MAX]; /* why not, where that was asked for */
    struct plan_lazy lazy;        /* what a plan gets, then; the list is owned */
    unsigned holders;             /* of this struct; counted on the loop only */
};

must_check struct call_tree *call_tree_new(void); /* held once; NULL: no memory */
struct call_tree *call_tree_hold(struct call_tree *t);
void call_tree_drop(struct call_tree *t); /* the last holder frees it; NULL is fine */

/* For whom: what may be loaded, and how. */
struct tree_load {
    const struct app *app;
    const struct place *where;
    int lang;                    /* row of core/languages.h */
    const struct limits *limits; /* of the workspace */
};
/* Adds what is in the mounts to the request's files and takes away what may not be read. */
must_check int call_tree_load(struct call_tree *t, struct call_request *r,
                              const struct tree_load *how, struct err *e);

/* On a worker. With onPermissionDenied "throw" what is not allowed fails when it is tried;
 * otherwise a run is to see its own writes. *ret_fenced: there are rights, which are the caller's.
 */
must_check int call_tree_fence(const struct call_tree *t, const struct call_request *r,
                               struct call_rights *ret, bool *ret_fenced, struct err *e);
/* What a plan lends: NULL where nothing is. rights: NULL where everything may be written. */
must_check int call_tree_lend(struct call_tree *t, const struct call_request *r,
                              const struct call_rights *rights, const struct plan_lazy **ret,
                              struct err *e);
/* Is a file of the host as it was lent, in content? `fd`: what it is now. */
bool call_tree_same(const struct call_tree *t, const struct call_file *old, int fd, uint64_t size);

/* Reads what the host has of lent files that were changed, as far as there is room: what was there
 * before. The changes are measured against the request's files. */
void call_tree_recall(struct call_tree *t, struct call_request *r, const struct changes *all);

/* Marks the changes that were not allowed; the number of them. Takes long: on a worker. */
size_t call_tree_judge(const struct call_tree *t, struct changes *all, const char *workdir,
                       uint64_t *steps);
