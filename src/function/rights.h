/* SPDX-License-Identifier: MIT */
/*
 * Permissions as a kernel can enforce them: what may be written below each directory and to each
 * file that is there before a run. Pure.
 *
 * Rules speak of names, a kernel of directories. So a right is given to a directory as soon as one
 * name below it, existing or not, might have it: what is allowed is never refused. What is granted
 * too much is found among the changes afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/plan.h"
#include "function/mount.h"
#include "function/request.h"

enum { RIGHTS_DIRS_MAX = 16384 };

struct call_rights {
    char **dirs; /* owned, each, sorted: absolute, ending in a slash */
    size_t dirs_n, dirs_cap;
    unsigned *dir_rights; /* owned: PLAN_* of each */
    unsigned *files;      /* owned: PLAN_* of each file of the request */
};

struct rights_ask {
    const struct mount *mount;
    const char *workdir;
    const struct call_file *files;
    size_t files_n;
    const char *const *made; /* directories that will be there, ending in a slash */
    size_t made_n;
    uint64_t *steps; /* the budget to ask the rules, see function/glob.h */
};

/* -1: out of memory, too many directories, or the budget did not suffice. */
must_check int rights_find(const struct rights_ask *ask, struct call_rights *ret, struct err *e);
void rights_done(struct call_rights *r);
/* Row i as a file of a plan. */
struct plan_file rights_dir(const struct call_rights *r, size_t i);
