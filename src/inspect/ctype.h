/* SPDX-License-Identifier: MIT */
/* Types of C and C++ from the tree: specifiers and declarators become a struct native. */
#pragma once

#include "inspect/branch.h"
#include "inspect/walk.h"

enum { CTYPE_NAMES_MAX = 512 }; /* types that a source gives a name */

/* What a name stands for. */
struct ctype_name {
    struct slice name;
    TSNode type;       /* null: a struct, union or class */
    TSNode declarator; /* of a typedef; null: none */
    bool is_enum;
};

struct ctypes {
    struct walk *w;
    struct ctype_name v[CTYPE_NAMES_MAX];
    size_t n;
    struct macros macros;
    bool complex_is_type; /* there is a header that makes this word one */
};

/* Collects typedef, using, struct, class and enum of one declaration (or nothing). */
void ctypes_learn(struct ctypes *c, TSNode declaration);
/* The type that a declaration (its "type" and qualifiers) gives to this declarator (null: none; a
 * function's: what it returns). NULL only when memory ran out. */
const struct native *ctype_of(struct ctypes *c, TSNode declaration, TSNode declarator);
/* The declared name inside a declarator; null: there is none. */
TSNode cdeclarator_name(struct walk *w, TSNode declarator);
/* The function inside a declarator that declares one; null: it does not. */
TSNode cdeclarator_function(struct walk *w, TSNode declarator);
