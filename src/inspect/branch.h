/* SPDX-License-Identifier: MIT */
/*
 * Branches of #if in C and C++, as far as the text alone can decide them: by numbers, by names that
 * the text itself defines and by those of the compiler. Whatever a header may have a say in stays
 * open, and then both branches count.
 */
#pragma once

#include "inspect/walk.h"

enum { MACROS_MAX = 256 };

enum truth { TRUTH_NO, TRUTH_YES, TRUTH_OPEN };

struct macro {
    struct slice name;
    enum truth defined;
    struct slice value; /* p == NULL: not known */
};

struct macros {
    struct macro v[MACROS_MAX];
    size_t n;
    bool lost;     /* there were more: nothing can be told any more */
    unsigned open; /* branches around this place that may or may not be compiled */
};

/* Takes in #define and #undef, and ignores every other node. */
void macros_learn(struct macros *m, struct walk *w, TSNode n);
/* Is what stands directly in this node compiled? TRUTH_YES for what is no branch. */
enum truth branch_truth(const struct macros *m, struct walk *w, TSNode n);
