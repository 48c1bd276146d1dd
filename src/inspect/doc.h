/* SPDX-License-Identifier: MIT */
/*
 * What people write above or into functions: summary, and a word on each parameter. Understands
 * @param of JSDoc, phpDoc, YARD and Doxygen, :param: of Sphinx, "Args:" of Google and the
 * underlined "Parameters" of NumPy. Whatever it does not understand belongs to the summary.
 */
#pragma once

#include "inspect/model.h"

enum { DOC_ENTRIES_MAX = 64 };

struct doc_entry {
    struct slice name, type, text;
};

struct doc {
    struct slice summary;
    struct doc_entry v[DOC_ENTRIES_MAX];
    size_t n;
    struct doc_entry returns;
};

/* A comment, or lines of comments, without their marks. p == NULL: nothing is said. */
struct slice doc_of_comment(struct arena *a, struct slice raw);
/* A string literal `s` of Python, prefix and quotes included, as inspect.cleandoc() shows it. */
struct slice doc_of_string(struct arena *a, struct slice s);

void doc_read(struct arena *a, enum dialect dialect, struct slice text, struct doc *ret);
/* NULL: nothing is said of it. */
const struct doc_entry *doc_find(const struct doc *d, struct slice name);
