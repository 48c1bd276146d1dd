/* SPDX-License-Identifier: MIT */
/*
 * Around the tree: nodes, their texts and their children, with a budget.
 *
 * Children are always visited with a cursor: asking a node for its i-th child or its next sibling
 * searches from the front, which a hostile source turns into quadratic time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tree_sitter/api.h>

#include "inspect/model.h"

/* The library looks for the names of fields one after the other, so they are remembered. */
struct field {
    const char *name; /* static */
    TSFieldId id;
};

enum { FIELDS_MAX = 32 };

struct walk {
    struct model *m;
    const char *text; /* as parsed */
    size_t n;
    uint32_t skew;     /* bytes of it that were put before the tenant's */
    size_t nodes_left; /* budget */
    size_t calls_left; /* the same for walk_calls() */
    struct field fields[FIELDS_MAX];
    size_t fields_n;
    struct param params[INSPECT_PARAMS_MAX];
    size_t params_n; /* of the function being collected */
    bool params_over;
};

struct slice node_text(const struct walk *w, TSNode n);
struct slice node_short(const struct walk *w, TSNode n); /* cut at INSPECT_TEXT_MAX */
bool node_is(TSNode n, const char *type);
/* `name` is a literal. Null node: none; of a null node, too. */
TSNode node_field(struct walk *w, TSNode n, const char *name);
bool node_is_in(TSNode n, const char *const types[]); /* NULL at the end */
uint32_t node_line(TSNode n);
uint32_t node_end_line(TSNode n);

/* for (kids_of(w, n, &k); kids_next(&k, &child);) with k marked cleanup_with(kids_done) */
struct kids {
    struct walk *w;
    TSTreeCursor cursor;
    bool open, started;
    struct slice remark; /* the comment above what comes next, for kids_next_named() */
    uint32_t remark_end; /* its last line */
};
#define KIDS_NONE ((struct kids){0})
void kids_of(struct walk *w, TSNode n, struct kids *ret);
bool kids_next(struct kids *k, TSNode *ret);
/* The next one that is no mere word or sign, and the comment that stands directly above it. */
bool kids_next_named(struct kids *k, TSNode *ret, struct slice *ret_above);
const char *kids_field(const struct kids *k); /* of the child just returned; NULL: none */
void kids_done(struct kids *k);

/* The first child of that type, anonymous ones ("async", "*") included; null node: none. */
TSNode node_child(struct walk *w, TSNode n, const char *type);
bool node_has_child(struct walk *w, TSNode n, const char *type);
/* The first named child; null node: none. */
TSNode node_first_named(struct walk *w, TSNode n);
/* Is there a node of this type below, outside of nodes of the types `closed`? `word` is a text
 * without which it cannot be. */
bool node_contains(struct walk *w, TSNode n, const char *type, const char *word,
                   const char *const closed[]);

/* Notes the names that the program calls when it is loaded (model_add_called()): nodes of type
 * `call`, outside of nodes of the types `closed`, whose field `field` is of type `name`. Without a
 * field: the node itself. */
struct call_form {
    const char *call, *field, *name;
    const char *const *closed;
};
void walk_calls(struct walk *w, TSNode root, const struct call_form *form);

/* A new function with the facts that all languages share. NULL: the list is full. */
struct function *walk_function(struct walk *w, TSNode n, struct slice name, struct slice scope);
/* The parameters being collected. NULL: too many. */
struct param *walk_param(struct walk *w, struct slice name, enum param_kind kind);
/* Hands the collected parameters to the function and gives positions to those that have one. */
void walk_params_end(struct walk *w, struct function *f);
/* `scope` + separator + `name`. */
struct slice walk_join(struct walk *w, struct slice scope, const char *separator,
                       struct slice name);

/* One per language: fills the model from the root of the tree. */
typedef void collect_fn(struct walk *w, TSNode root);
collect_fn collect_python, collect_javascript, collect_ruby, collect_php, collect_c;
