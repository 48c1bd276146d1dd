/* SPDX-License-Identifier: MIT */
/* The list of what is lent, as core/plan.h describes it, row by row. Pure. */
#pragma once

#include "base/cleanup.h"
#include "core/plan_parts.h"

struct lent_list {
    const char *p, *at, *end;
};

struct lent_entry {
    struct lazy_row row;
    const char *path, *host; /* in the list; the path is relative and not empty */
};

/* 1, 0 at the end, or -errno. */
must_check int lent_next(struct lent_list *l, struct lent_entry *ret);
