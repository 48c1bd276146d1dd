/* SPDX-License-Identifier: MIT */
/*
 * Host directories in a call: what is in them is copied in before the run, and changes go back
 * afterwards if that was asked for. Only below MOUNT_ROOTS, opened beneath those directories and
 * never through a link that leads out. Everything here blocks: on a worker only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "call/changes.h"
#include "call/mount.h"
#include "call/request.h"

struct call_tree {
    struct mount mount;
    int fd[MOUNT_DIRS_MAX]; /* owned: the host directories; -1: not open */
    char **made;            /* owned, each: directories to be there, ending in a slash */
    size_t made_n;
    char **owned; /* owned, each: paths and contents that were loaded */
    size_t owned_n;
    unsigned holders; /* of this struct; counted on the loop only */
};

must_check struct call_tree *call_tree_new(void); /* held once; NULL: no memory */
struct call_tree *call_tree_hold(struct call_tree *t);
void call_tree_drop(struct call_tree *t); /* the last holder frees it; NULL is fine */

/* Adds what is in the mounts to the request's files and takes away what may not be read. `roots`
 * is the operator's list, separated by colons; room: bytes that may be loaded. */
must_check int call_tree_load(struct call_tree *t, struct call_request *r, const char *roots,
                              uint64_t room, struct err *e);
/* Marks the changes that were not allowed; the number of them. */
size_t call_tree_judge(const struct call_tree *t, struct changes *all, const char *workdir);
