/* SPDX-License-Identifier: MIT */
/*
 * C and C++: functions of the file and of its namespaces. Listed, but refused with a reason, is
 * what no generated caller can call: templates, members, operators, overloads, variable arguments
 * and whatever takes or returns something JSON cannot carry.
 */
#include <stdio.h>
#include <string.h>

#include "inspect/ctype.h"
#include "inspect/infer.h"

struct place {
    struct slice scope;
    struct slice above;
    unsigned depth;
    bool member, is_template;
};

static const char *const through[] = {
    "preproc_if",      "preproc_ifdef",         "preproc_else",     "preproc_elif",
    "preproc_elifdef", "linkage_specification", "declaration_list", NULL,
};

static void collect_in(struct ctypes *c, TSNode list, struct place at);
static void collect_one(struct ctypes *c, TSNode n, struct place at);

/* ---- refusals ---- */

static void refuse_plain(struct walk *w, struct function *f, const char *words)
{
    if (!f->refused.p)
        f->refused = arena_copy(&w->m->arena, words, strlen(words));
}

static void refuse_param(struct walk *w, struct function *f, struct slice name, const char *why)
{
    char text[256];

    (void)snprintf(text, sizeof text, "parameter '%.*s' is %s", (int)(name.n > 64 ? 64 : name.n),
                   name.p ? name.p : "", why);
    refuse_plain(w, f, text);
}

static void refuse_return(struct walk *w, struct function *f, const char *why)
{
    char text[256];

    (void)snprintf(text, sizeof text, "returns %s", why);
    refuse_plain(w, f, text);
}

/* ---- parameters ---- */

static void add_param(struct ctypes *c, TSNode n, struct function *f)
{
    struct walk *w = c->w;
    TSNode declarator = node_field(c->w, n, "declarator"),
           value = node_field(c->w, n, "default_value");
    const struct native *t = ctype_of(c, n, declarator);
    struct param *p;

    if (!t)
        return;
    if (t->class == NATIVE_VOID && ts_node_is_null(declarator))
        return; /* f(void) */
    p = walk_param(w, node_text(w, cdeclarator_name(w, declarator)), PARAM_POSITIONAL);
    if (!p)
        return;
    p->native = t;
    p->type = t->text;
    p->by_reference = strcmp(t->reference, "&") == 0 && !t->is_const;
    if (!ts_node_is_null(value)) {
        p->default_text = slice_trim(node_short(w, value)); /* "= {}" begins behind the "=" */
        p->required = false;
    }
    if (!ts_node_is_null(cdeclarator_function(w, declarator)))
        refuse_param(w, f, p->name, "a pointer to a function");
    else if (t->class == NATIVE_UNSUPPORTED || t->class == NATIVE_VOID)
        refuse_param(w, f, p->name, t->why ? t->why : "void");
}

static void add_params(struct ctypes *c, TSNode list, struct function *f)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(c->w, list, &k); kids_next(&k, &child);) {
        if (node_is(child, "parameter_declaration") ||
            node_is(child, "optional_parameter_declaration"))
            add_param(c, child, f);
        else if (node_is(child, "variadic_parameter") || node_is(child, "...") ||
                 node_is(child, "variadic_parameter_declaration"))
            refuse_plain(c->w, f, "takes a variable number of arguments");
        else if (node_is(child, "identifier"))
            refuse_plain(c->w, f, "its parameters have no types");
    }
}

/* ---- functions ---- */

/* What stands before the name, blanks made single and none before a star: "char*". */
static struct slice written_before(struct walk *w, TSNode whole, TSNode name)
{
    struct slice text = node_text(w, whole);
    size_t n = 0, end = ts_node_start_byte(name) - ts_node_start_byte(whole);
    char *p;

    if (!text.p || end > text.n || end > INSPECT_TEXT_MAX)
        return (struct slice){0};
    p = arena_take(&w->m->arena, end + 1);
    if (!p)
        return (struct slice){0};
    for (size_t i = 0; i < end; i++) {
        bool blank = strchr(" \t\r\n\f\v", text.p[i]) && text.p[i];

        if (text.p[i] == '*' && n > 0 && p[n - 1] == ' ')
            n--;
        if (!blank)
            p[n++] = text.p[i];
        else if (n > 0 && p[n - 1] != ' ')
            p[n++] = ' ';
    }
    return slice_trim((struct slice){p, n});
}

static void add_return(struct ctypes *c, TSNode n, TSNode declarator, struct function *f)
{
    TSNode function = cdeclarator_function(c->w, declarator);
    TSNode trailing = node_child(c->w, function, "trailing_return_type"), type = {0};
    const struct native *t;

    if (!ts_node_is_null(trailing))
        type = node_child(c->w, trailing, "type_descriptor");
    else if (ts_node_is_null(node_field(c->w, n, "type")))
        return; /* a constructor */
    t = ts_node_is_null(type) ? ctype_of(c, n, declarator)
                              : ctype_of(c, type, node_field(c->w, type, "declarator"));
    f->return_native = t;
    if (!t)
        return;
    f->return_type = t->text;
    if (t->class == NATIVE_UNSUPPORTED)
        refuse_return(c->w, f, t->why);
    else if (t->class == NATIVE_ARRAY && t->pointer)
        refuse_plain(c->w, f, "returns a pointer to a number of values that nobody knows");
}

static void refuse_by_place(struct walk *w, struct function *f, TSNode name, struct place at)
{
    if (at.is_template)
        refuse_plain(w, f, "is a template");
    else if (at.member || node_is(name, "qualified_identifier"))
        refuse_plain(w, f, "is a member of a class");
    else if (node_is(name, "operator_name") || node_is(name, "operator_cast"))
        refuse_plain(w, f, "is an operator");
    else if (node_is(name, "destructor_name"))
        refuse_plain(w, f, "is a destructor");
    else if (slice_is(f->name, "main"))
        refuse_plain(w, f, "main is the name of the program that calls");
}

static bool is_static(struct walk *w, TSNode n)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, n, &k); kids_next(&k, &child);)
        if (node_is(child, "storage_class_specifier") && slice_is(node_text(w, child), "static"))
            return true;
    return false;
}

static void add_function(struct ctypes *c, TSNode n, TSNode declarator, struct place at)
{
    struct walk *w = c->w;
    TSNode function = cdeclarator_function(w, declarator);
    TSNode name = cdeclarator_name(w, function);
    struct function *f;

    if (ts_node_is_null(function) || ts_node_is_null(name))
        return;
    f = walk_function(w, n, node_text(w, name), at.scope);
    if (!f)
        return;
    f->kind = node_is(n, "function_definition") ? FUNCTION_PLAIN : FUNCTION_DECLARATION;
    if (at.member || node_is(name, "qualified_identifier"))
        f->kind = FUNCTION_METHOD;
    f->top_level = !at.scope.p && f->kind != FUNCTION_METHOD;
    f->is_static = is_static(w, n);
    f->candidate = f->kind == FUNCTION_PLAIN && !node_is(name, "operator_name");
    f->return_written = written_before(w, n, name);
    refuse_by_place(w, f, name, at);
    add_return(c, n, declarator, f);
    add_params(c, node_field(c->w, function, "parameters"), f);
    walk_params_end(w, f);
    infer_function(w, f, doc_of_comment(&w->m->arena, at.above));
}

/* ---- what is around them ---- */

static void add_record(struct ctypes *c, TSNode n, struct place at)
{
    struct slice name = node_text(c->w, node_field(c->w, n, "name"));
    TSNode body = node_field(c->w, n, "body");

    if (c->w->m->dialect != DIALECT_CPP || name.n == 0 || ts_node_is_null(body))
        return;
    at.scope = walk_join(c->w, at.scope, "::", name);
    at.member = true;
    at.depth++;
    collect_in(c, body, at);
}

static void add_namespace(struct ctypes *c, TSNode n, struct place at)
{
    struct slice name = node_text(c->w, node_field(c->w, n, "name"));

    at.depth++;
    if (name.n > 0)
        at.scope = walk_join(c->w, at.scope, "::", name);
    collect_in(c, node_field(c->w, n, "body"), at);
}

/* What stands above a template is said of what is in it. */
static void add_template(struct ctypes *c, TSNode n, struct place at)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    at.is_template = true;
    at.depth++;
    if (at.depth > INSPECT_SCOPE_MAX)
        return;
    for (kids_of(c->w, n, &k); kids_next(&k, &child);)
        if (ts_node_is_named(child))
            collect_one(c, child, at);
}

static void collect_one(struct ctypes *c, TSNode n, struct place at)
{
    if (node_is(n, "function_definition") || node_is(n, "declaration") ||
        node_is(n, "field_declaration")) {
        TSNode type = node_field(c->w, n, "type");

        ctypes_learn(c, n);
        if (!ts_node_is_null(node_field(c->w, n, "declarator")))
            add_function(c, n, node_field(c->w, n, "declarator"), at);
        else if (!ts_node_is_null(type))
            add_record(c, type, at);
    } else if (node_is(n, "type_definition") || node_is(n, "alias_declaration") ||
               node_is(n, "enum_specifier")) {
        ctypes_learn(c, n);
    } else if (node_is(n, "struct_specifier") || node_is(n, "class_specifier") ||
               node_is(n, "union_specifier")) {
        ctypes_learn(c, n);
        add_record(c, n, at);
    } else if (node_is(n, "namespace_definition")) {
        add_namespace(c, n, at);
    } else if (node_is(n, "template_declaration")) {
        add_template(c, n, at);
    } else if (node_is(n, "return_statement")) {
        c->w->m->top_level_return = true;
    } else if (node_is_in(n, through)) {
        at.depth++;
        collect_in(c, n, at);
    } else {
        macros_learn(&c->macros, c->w, n);
    }
}

/* Is this child of a branch, or its other branch, never compiled? */
static bool is_left_out(enum truth branch, const struct kids *k)
{
    const char *field = branch == TRUTH_OPEN ? NULL : kids_field(k);

    return branch != TRUTH_OPEN &&
           (field && strcmp(field, "alternative") == 0) == (branch == TRUTH_YES);
}

static void collect_in(struct ctypes *c, TSNode list, struct place at)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    enum truth branch;
    TSNode child;

    if (at.depth > INSPECT_SCOPE_MAX)
        return;
    branch = branch_truth(&c->macros, c->w, list);
    c->macros.open += branch == TRUTH_OPEN;
    for (kids_of(c->w, list, &k); kids_next_named(&k, &child, &at.above);)
        if (!is_left_out(branch, &k))
            collect_one(c, child, at);
    c->macros.open -= branch == TRUTH_OPEN;
}

void collect_c(struct walk *w, TSNode root)
{
    cleanup_free struct ctypes *c = calloc(1, sizeof *c);

    if (!c) {
        w->m->truncated = true;
        return;
    }
    c->w = w;
    c->complex_is_type = w->m->dialect == DIALECT_C && (memmem(w->text, w->n, "complex.h", 9) ||
                                                        memmem(w->text, w->n, "tgmath.h", 8));
    collect_in(c, root, (struct place){0});
}
