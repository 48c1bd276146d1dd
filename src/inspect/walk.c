/* SPDX-License-Identifier: MIT */
#include "inspect/walk.h"

#include <stdio.h>
#include <string.h>

/* ---- nodes ---- */

struct slice node_text(const struct walk *w, TSNode n)
{
    uint32_t from, to;

    if (ts_node_is_null(n))
        return (struct slice){0};
    from = ts_node_start_byte(n), to = ts_node_end_byte(n);
    if (from > to || to > w->n)
        return (struct slice){0};
    return (struct slice){w->text + from, to - from};
}

struct slice node_short(const struct walk *w, TSNode n)
{
    struct slice s = node_text(w, n);

    if (s.n > INSPECT_TEXT_MAX)
        s.n = INSPECT_TEXT_MAX;
    return s;
}

bool node_is(TSNode n, const char *type)
{
    return !ts_node_is_null(n) && strcmp(ts_node_type(n), type) == 0;
}

bool node_is_in(TSNode n, const char *const types[])
{
    for (size_t i = 0; types[i]; i++)
        if (node_is(n, types[i]))
            return true;
    return false;
}

/* Names are compared by address: they are literals, and one that is there twice costs a place. */
static TSFieldId field_id(struct walk *w, TSNode n, const char *name)
{
    TSFieldId id;

    for (size_t i = 0; i < w->fields_n; i++)
        if (w->fields[i].name == name)
            return w->fields[i].id;
    id = ts_language_field_id_for_name(ts_tree_language(n.tree), name, (uint32_t)strlen(name));
    if (w->fields_n < FIELDS_MAX)
        w->fields[w->fields_n++] = (struct field){name, id};
    return id;
}

TSNode node_field(struct walk *w, TSNode n, const char *name)
{
    return ts_node_is_null(n) ? n : ts_node_child_by_field_id(n, field_id(w, n, name));
}

uint32_t node_line(TSNode n)
{
    return ts_node_start_point(n).row + 1;
}

uint32_t node_end_line(TSNode n)
{
    TSPoint end = ts_node_end_point(n);

    /* a node that ends with a line break ends on the line before */
    return end.column == 0 && end.row > ts_node_start_point(n).row ? end.row : end.row + 1;
}

/* ---- children ---- */

void kids_of(struct walk *w, TSNode n, struct kids *ret)
{
    *ret = (struct kids){.w = w};
    if (ts_node_is_null(n))
        return;
    ret->cursor = ts_tree_cursor_new(n);
    ret->open = true;
}

void kids_done(struct kids *k)
{
    if (k->open)
        ts_tree_cursor_delete(&k->cursor);
    k->open = false;
}

bool kids_next(struct kids *k, TSNode *ret)
{
    bool more = k->open;

    if (more && k->w->nodes_left == 0) {
        k->w->m->truncated = true;
        more = false;
    }
    if (more && k->started)
        more = ts_tree_cursor_goto_next_sibling(&k->cursor);
    else if (more)
        more = ts_tree_cursor_goto_first_child(&k->cursor);
    if (!more) {
        kids_done(k);
        return false;
    }
    k->started = true;
    k->w->nodes_left--;
    *ret = ts_tree_cursor_current_node(&k->cursor);
    return true;
}

/* What stands directly above n, which is the next one of the list. Comments are collected. */
static struct slice above(struct kids *k, TSNode n)
{
    uint32_t row = ts_node_start_point(n).row;
    struct slice text = node_text(k->w, n), before = k->remark;
    bool adjacent = before.p && row <= k->remark_end + 1;

    if (!node_is(n, "comment")) {
        k->remark = (struct slice){0};
        return adjacent ? before : (struct slice){0};
    }
    /* lines of comments belong together, blocks stand for themselves */
    if (adjacent && !(text.n > 1 && text.p[1] == '*'))
        text = (struct slice){before.p, (size_t)(text.p + text.n - before.p)};
    k->remark = text;
    k->remark_end = ts_node_end_point(n).row;
    if (ts_node_end_point(n).column == 0 && k->remark_end > row)
        k->remark_end--; /* some grammars count the line break as part of the comment */
    return (struct slice){0};
}

bool kids_next_named(struct kids *k, TSNode *ret, struct slice *ret_above)
{
    while (kids_next(k, ret)) {
        *ret_above = above(k, *ret);
        if (ts_node_is_named(*ret))
            return true;
    }
    return false;
}

const char *kids_field(const struct kids *k)
{
    return ts_tree_cursor_current_field_name(&k->cursor);
}

TSNode node_child(struct walk *w, TSNode n, const char *type)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, n, &k); kids_next(&k, &child);)
        if (node_is(child, type))
            return child;
    return (TSNode){0};
}

bool node_has_child(struct walk *w, TSNode n, const char *type)
{
    return !ts_node_is_null(node_child(w, n, type));
}

TSNode node_first_named(struct walk *w, TSNode n)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, n, &k); kids_next(&k, &child);)
        if (ts_node_is_named(child) && !node_is(child, "comment"))
            return child;
    return (TSNode){0};
}

/* To the node after this one in the order of the text, below it only when `enter`. */
static bool cursor_advance(TSTreeCursor *c, size_t *depth, bool enter)
{
    if (enter && ts_tree_cursor_goto_first_child(c)) {
        ++*depth;
        return true;
    }
    while (*depth > 0) {
        if (ts_tree_cursor_goto_next_sibling(c))
            return true;
        if (!ts_tree_cursor_goto_parent(c))
            return false;
        --*depth;
    }
    return false;
}

bool node_contains(struct walk *w, TSNode n, const char *type, const char *word,
                   const char *const closed[])
{
    struct slice text = node_text(w, n);
    TSTreeCursor c;
    size_t depth = 0;
    bool found = false, enter = true;

    if (!text.p || !memmem(text.p, text.n, word, strlen(word)))
        return false;
    c = ts_tree_cursor_new(n);
    while (!found && w->nodes_left > 0 && cursor_advance(&c, &depth, enter)) {
        TSNode at = ts_tree_cursor_current_node(&c);

        w->nodes_left--;
        found = ts_node_is_named(at) && node_is(at, type);
        enter = !node_is_in(at, closed);
    }
    ts_tree_cursor_delete(&c);
    return found;
}

/* (() => { ... })() runs at once. */
static bool is_at_once(TSNode function)
{
    TSNode around = ts_node_parent(function);

    return node_is(around, "parenthesized_expression") &&
           node_is(ts_node_parent(around), "call_expression");
}

void walk_calls(struct walk *w, TSNode root, const struct call_form *form)
{
    TSTreeCursor c = ts_tree_cursor_new(root);
    bool enter = true;
    size_t depth = 0;

    while (w->calls_left > 0 && w->m->called_n < MODEL_CALLED_MAX &&
           cursor_advance(&c, &depth, enter)) {
        TSNode at = ts_tree_cursor_current_node(&c), name = at;

        w->calls_left--;
        enter = !node_is_in(at, form->closed) || is_at_once(at);
        if (!node_is(at, form->call))
            continue;
        if (form->field)
            name = node_field(w, at, form->field);
        if (node_is(name, form->name))
            model_add_called(w->m, node_text(w, name));
    }
    ts_tree_cursor_delete(&c);
}

/* ---- functions ---- */

struct function *walk_function(struct walk *w, TSNode n, struct slice name, struct slice scope)
{
    struct function *f;

    w->params_n = 0;
    w->params_over = false;
    if (!name.p || name.n == 0 || name.n > INSPECT_TEXT_MAX)
        return NULL;
    f = model_add(w->m);
    if (!f)
        return NULL;
    f->name = name;
    f->scope = scope;
    f->line = node_line(n);
    f->end_line = node_end_line(n);
    f->kind = scope.p ? FUNCTION_METHOD : FUNCTION_PLAIN;
    f->top_level = !scope.p;
    return f;
}

struct param *walk_param(struct walk *w, struct slice name, enum param_kind kind)
{
    struct param *p;

    if (w->params_n == INSPECT_PARAMS_MAX) {
        w->params_over = true;
        return NULL;
    }
    p = &w->params[w->params_n];
    *p = (struct param){.name = name, .kind = kind, .index = -1, .required = true};
    if (!p->name.p || p->name.n == 0 || p->name.n > INSPECT_TEXT_MAX) {
        char made[16];

        (void)snprintf(made, sizeof made, "arg%zu", w->params_n);
        p->name = arena_copy(&w->m->arena, made, strlen(made));
        p->unnamed = true;
    }
    w->params_n++;
    return p;
}

static bool has_position(enum param_kind k)
{
    return k == PARAM_POSITIONAL || k == PARAM_POSITIONAL_ONLY || k == PARAM_VARIADIC ||
           k == PARAM_OPTIONS;
}

void walk_params_end(struct walk *w, struct function *f)
{
    struct param *v = arena_take(&w->m->arena, w->params_n * sizeof *v);
    int index = 0;

    if (!v)
        return;
    for (size_t i = 0; i < w->params_n; i++) {
        v[i] = w->params[i];
        if (has_position(v[i].kind))
            v[i].index = index++;
        if (v[i].kind == PARAM_VARIADIC || v[i].kind == PARAM_KWARGS || v[i].kind == PARAM_BLOCK)
            v[i].required = false;
    }
    f->params = v;
    f->params_n = w->params_n;
    f->params_left_out = w->params_over;
    w->m->truncated |= w->params_over;
}

struct slice walk_join(struct walk *w, struct slice scope, const char *separator, struct slice name)
{
    size_t n = scope.n + strlen(separator) + name.n;
    char *p;

    if (!scope.p)
        return name;
    if (n > INSPECT_TEXT_MAX)
        return scope;
    p = arena_take(&w->m->arena, n + 1);
    if (!p)
        return name;
    (void)snprintf(p, n + 1, "%.*s%s%.*s", (int)scope.n, scope.p, separator, (int)name.n,
                   name.p ? name.p : "");
    return (struct slice){p, strlen(p)};
}
