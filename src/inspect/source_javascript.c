/* SPDX-License-Identifier: MIT */
/*
 * JavaScript: declarations, functions in variables, classes, and what is exported: `export`, also
 * by name afterwards, `exports.x =`, `module.exports = ...`. Functions inside others are nobody's
 * business.
 */
#include <string.h>

#include "base/jw.h"
#include "inspect/infer.h"
#include "inspect/schema.h"

enum { OPTIONS_MAX = 64, OPTIONS_SCHEMA_MAX = 64 * 1024 };

struct place {
    struct slice scope;
    struct slice above; /* comment */
    unsigned depth;
    bool exported, is_default, conditional;
};

static const char *const functions[] = {
    "arrow_function",
    "function_expression",
    "generator_function",
    "function_declaration",
    "generator_function_declaration",
    NULL,
};
static const char *const blocks[] = {
    "if_statement",   "else_clause", "statement_block", "try_statement", "catch_clause",
    "finally_clause", NULL,
};

static void collect_in(struct walk *w, TSNode list, struct place at);
static void add_value(struct walk *w, TSNode value, struct slice name, struct place at);

/* A name as it is called by: quotes of a string are not part of it. */
static struct slice member_name(const struct walk *w, TSNode n)
{
    struct slice s = node_text(w, n);

    if (node_is(n, "string") && s.n >= 2)
        return (struct slice){s.p + 1, s.n - 2};
    if (node_is(n, "computed_property_name"))
        s.n = 0;
    return s;
}

/* ---- parameters ---- */

/* One member of { a, b: c = 2, ...rest } as a property. */
static void option_put(struct walk *w, TSNode n, struct jw *j, bool *ret_open)
{
    TSNode key = n, value = {0};
    struct buf json = BUF_INIT(INSPECT_TEXT_MAX * 2);
    struct slice name;

    if (node_is(n, "rest_pattern")) {
        *ret_open = true;
        return;
    }
    if (node_is(n, "object_assignment_pattern")) {
        key = node_field(w, n, "left");
        value = node_field(w, n, "right");
    } else if (node_is(n, "pair_pattern")) {
        TSNode inside = node_field(w, n, "value");

        key = node_field(w, n, "key");
        if (node_is(inside, "assignment_pattern"))
            value = node_field(w, inside, "right");
    } else if (!node_is(n, "shorthand_property_identifier_pattern")) {
        return;
    }
    name = member_name(w, key);
    if (name.n == 0)
        return;
    jw_bytes(j, name.p, name.n);
    (void)buf_putc(j->out, ':');
    j->comma = false;
    jw_object(j);
    if (literal_to_json(w->m->dialect, node_short(w, value), &json)) {
        jw_key(j, "default");
        jw_raw(j, json.p, json.n);
    }
    jw_object_end(j);
    buf_done(&json);
}

static struct slice options_schema(struct walk *w, TSNode pattern)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    struct buf out = BUF_INIT(OPTIONS_SCHEMA_MAX);
    struct jw j = JW(&out);
    struct slice schema = SLICE("{\"type\":\"object\"}");
    bool open = false;
    size_t n = 0;
    TSNode child;

    jw_object(&j);
    jw_kv_string(&j, "type", "object");
    jw_key(&j, "properties");
    jw_object(&j);
    for (kids_of(w, pattern, &k); n < OPTIONS_MAX && kids_next(&k, &child);)
        if (ts_node_is_named(child))
            option_put(w, child, &j, &open), n++;
    jw_object_end(&j);
    jw_object_end(&j);
    if (!out.failed && n < OPTIONS_MAX)
        schema = arena_copy(&w->m->arena, out.p, out.n);
    buf_done(&out);
    return schema;
}

static void add_param(struct walk *w, TSNode n)
{
    TSNode value = {0};
    struct param *p;

    if (node_is(n, "assignment_pattern")) {
        value = node_field(w, n, "right");
        n = node_field(w, n, "left");
    }
    if (node_is(n, "rest_pattern"))
        p = walk_param(w, node_text(w, node_child(w, n, "identifier")), PARAM_VARIADIC);
    else if (node_is(n, "identifier") || node_is(n, "undefined"))
        p = walk_param(w, node_text(w, n), PARAM_POSITIONAL);
    else if (node_is(n, "object_pattern"))
        p = walk_param(w, (struct slice){0}, PARAM_OPTIONS);
    else if (node_is(n, "array_pattern"))
        p = walk_param(w, (struct slice){0}, PARAM_POSITIONAL);
    else
        return;
    if (!p)
        return;
    if (node_is(n, "object_pattern"))
        p->schema = options_schema(w, n);
    else if (node_is(n, "array_pattern"))
        p->schema = SLICE("{\"type\":\"array\"}");
    if (!ts_node_is_null(value)) {
        p->default_text = node_short(w, value);
        p->required = false;
    }
}

static void add_params(struct walk *w, TSNode n)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode single = node_field(w, n, "parameter"), child;

    if (!ts_node_is_null(single)) {
        add_param(w, single);
        return;
    }
    for (kids_of(w, node_field(w, n, "parameters"), &k); kids_next(&k, &child);)
        if (ts_node_is_named(child))
            add_param(w, child);
}

/* ---- functions ---- */

static struct function *add_function(struct walk *w, TSNode n, struct slice name, struct place at)
{
    struct function *f = walk_function(w, n, name, at.scope);

    if (!f)
        return NULL;
    if (node_is(n, "arrow_function") && !at.scope.p)
        f->kind = FUNCTION_ARROW;
    f->is_async = node_has_child(w, n, "async");
    f->is_generator = node_has_child(w, n, "*");
    f->is_static = node_has_child(w, n, "static");
    f->exported = at.exported;
    f->is_default = at.is_default;
    f->candidate = !at.scope.p && !at.conditional;
    add_params(w, n);
    walk_params_end(w, f);
    infer_function(w, f, doc_of_comment(&w->m->arena, at.above));
    return f;
}

static void add_member(struct walk *w, TSNode n, struct place at)
{
    struct slice name;
    struct function *f;

    if (node_is(n, "field_definition")) {
        add_value(w, node_field(w, n, "value"), member_name(w, node_field(w, n, "property")), at);
        return;
    }
    if (!node_is(n, "method_definition") || node_has_child(w, n, "get") ||
        node_has_child(w, n, "set"))
        return;
    name = member_name(w, node_field(w, n, "name"));
    f = name.n > 0 ? add_function(w, n, name, at) : NULL;
    if (f && at.scope.p && slice_is(name, "constructor"))
        f->kind = FUNCTION_CONSTRUCTOR;
}

static void add_class(struct walk *w, TSNode n, struct slice name, struct place at)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    if (name.n == 0 || at.depth >= INSPECT_SCOPE_MAX)
        return;
    at.scope = walk_join(w, at.scope, ".", name);
    at.depth++;
    for (kids_of(w, node_field(w, n, "body"), &k); kids_next_named(&k, &child, &at.above);)
        add_member(w, child, at);
}

/* What a name is given: a function, a class, or nothing of interest. */
static void add_value(struct walk *w, TSNode value, struct slice name, struct place at)
{
    if (node_is_in(value, functions))
        (void)add_function(w, value, name, at);
    else if (node_is(value, "class"))
        add_class(w, value, name, at);
}

static void add_variables(struct walk *w, TSNode n, struct place at)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, n, &k); kids_next(&k, &child);)
        if (node_is(child, "variable_declarator") &&
            node_is(node_field(w, child, "name"), "identifier"))
            add_value(w, node_field(w, child, "value"), node_text(w, node_field(w, child, "name")),
                      at);
}

/* ---- exports ---- */

static void mark_exported(struct walk *w, struct slice name, bool is_default)
{
    size_t cost = w->m->n / 16; /* a search is paid for like nodes */

    w->nodes_left -= w->nodes_left < cost ? w->nodes_left : cost;
    for (size_t i = 0; i < w->m->n; i++)
        if (!w->m->functions[i].scope.p && slice_same(w->m->functions[i].name, name)) {
            w->m->functions[i].exported = true;
            w->m->functions[i].is_default |= is_default;
        }
}

/* export { f, g as default } may stand before f: such names are looked at in the end. */
static void mark_clause(struct walk *w, TSNode clause)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    size_t n = 0;
    TSNode child;

    for (kids_of(w, clause, &k); n < INSPECT_FUNCTIONS_MAX && kids_next(&k, &child);) {
        if (!node_is(child, "export_specifier"))
            continue;
        n++;
        mark_exported(w, node_text(w, node_field(w, child, "name")),
                      slice_is(node_text(w, node_field(w, child, "alias")), "default"));
    }
}

static void add_export(struct walk *w, TSNode n, struct place at)
{
    TSNode declaration = node_field(w, n, "declaration"), value = node_field(w, n, "value");

    at.exported = true;
    at.is_default = node_has_child(w, n, "default");
    if (node_is(declaration, "class_declaration"))
        add_class(w, declaration, node_text(w, node_field(w, declaration, "name")), at);
    else if (node_is_in(declaration, functions))
        (void)add_function(w, declaration, node_text(w, node_field(w, declaration, "name")), at);
    else if (!ts_node_is_null(declaration))
        add_variables(w, declaration, at);
    if (node_is_in(value, functions)) {
        struct slice name = node_text(w, node_field(w, value, "name"));

        (void)add_function(w, value, name.n > 0 ? name : SLICE("default"), at);
    } else if (node_is(value, "class")) {
        add_class(w, value, SLICE("default"), at);
    }
}

static void add_export_object(struct walk *w, TSNode object, struct place at)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, object, &k); kids_next_named(&k, &child, &at.above);)
        if (node_is(child, "method_definition"))
            add_member(w, child, at);
        else if (node_is(child, "pair"))
            add_value(w, node_field(w, child, "value"), member_name(w, node_field(w, child, "key")),
                      at);
}

/* exports.f = ..., module.exports.f = ..., module.exports = { ... }, globalThis.f = ... */
static void add_assignment(struct walk *w, TSNode statement, struct place at)
{
    static const char *const owners[] = {"exports", "module.exports", "globalThis", "this", NULL};
    TSNode n = node_first_named(w, statement), left, right;
    struct slice target;

    if (!node_is(n, "assignment_expression"))
        return;
    left = node_field(w, n, "left");
    right = node_field(w, n, "right");
    target = node_text(w, left);
    if (node_is(left, "identifier")) { /* f = () => 1 makes a global */
        add_value(w, right, target, at);
        return;
    }
    if (!node_is(left, "member_expression"))
        return;
    at.exported = true;
    if (slice_is(target, "module.exports") && node_is(right, "object")) {
        add_export_object(w, right, at);
        return;
    }
    if (slice_is(target, "module.exports")) {
        struct slice name = node_text(w, node_field(w, right, "name"));

        at.is_default = true;
        add_value(w, right, name.n > 0 ? name : SLICE("default"), at);
        return;
    }
    for (size_t i = 0; owners[i]; i++)
        if (slice_is(node_text(w, node_field(w, left, "object")), owners[i])) {
            at.exported = i < 2;
            add_value(w, right, node_text(w, node_field(w, left, "property")), at);
        }
}

/* module.exports = { f, g }, exports.x = f: the names of functions found before or after. */
static void mark_assigned(struct walk *w, TSNode statement)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode n = node_first_named(w, statement), right = node_field(w, n, "right"), child;
    struct slice target = node_text(w, node_field(w, n, "left"));
    size_t count = 0;

    if (!node_is(n, "assignment_expression") || !target.p ||
        !memmem(target.p, target.n, "exports", 7))
        return;
    if (node_is(right, "identifier"))
        mark_exported(w, node_text(w, right), slice_is(target, "module.exports"));
    if (!node_is(right, "object"))
        return;
    for (kids_of(w, right, &k); count < INSPECT_FUNCTIONS_MAX && kids_next(&k, &child); count++)
        if (node_is(child, "shorthand_property_identifier"))
            mark_exported(w, node_text(w, child), false);
        else if (node_is(child, "pair") && node_is(node_field(w, child, "value"), "identifier"))
            mark_exported(w, node_text(w, node_field(w, child, "value")), false);
}

/* ---- the program ---- */

static void collect_one(struct walk *w, TSNode n, struct place at)
{
    if (node_is_in(n, functions)) {
        (void)add_function(w, n, node_text(w, node_field(w, n, "name")), at);
    } else if (node_is(n, "class_declaration")) {
        add_class(w, n, node_text(w, node_field(w, n, "name")), at);
    } else if (node_is(n, "lexical_declaration") || node_is(n, "variable_declaration")) {
        add_variables(w, n, at);
    } else if (node_is(n, "export_statement")) {
        add_export(w, n, at);
    } else if (node_is(n, "expression_statement")) {
        add_assignment(w, n, at);
    } else if (node_is(n, "return_statement")) {
        w->m->top_level_return = true;
    } else if (node_is_in(n, blocks)) {
        at.depth++;
        at.conditional = true;
        collect_in(w, n, at);
    }
}

static void collect_in(struct walk *w, TSNode list, struct place at)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    if (at.depth > INSPECT_SCOPE_MAX)
        return;
    for (kids_of(w, list, &k); kids_next_named(&k, &child, &at.above);)
        collect_one(w, child, at);
}

static const char *const closed[] = {
    "arrow_function",     "function_expression",
    "generator_function", "function_declaration",
    "method_definition",  "generator_function_declaration",
    "class_declaration",  NULL,
};
static const struct call_form calls = {"call_expression", "function", "identifier", closed};

void collect_javascript(struct walk *w, TSNode root)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    collect_in(w, root, (struct place){0});
    for (kids_of(w, root, &k); kids_next(&k, &child);) {
        if (node_is(child, "export_statement"))
            mark_clause(w, node_child(w, child, "export_clause"));
        else if (node_is(child, "expression_statement"))
            mark_assigned(w, child);
    }
    walk_calls(w, root, &calls);
}
