/* SPDX-License-Identifier: MIT */
/* PHP: functions and the methods of classes, interfaces, traits and enums. A namespace holds for
 * what follows it, or for its braces. */
#include "inspect/infer.h"

struct place {
    struct slice space; /* namespace; p == NULL: the global one */
    struct slice class;
    unsigned depth;
    bool conditional;
};

static const char *const inner[] = {
    "function_definition",
    "anonymous_function",
    "arrow_function",
    "class_declaration",
    "anonymous_function_creation_expression",
    NULL,
};
static const char *const classes[] = {
    "class_declaration", "interface_declaration", "trait_declaration", "enum_declaration", NULL,
};
static const char *const blocks[] = {
    "if_statement",  "else_clause",  "else_if_clause", "compound_statement",
    "try_statement", "catch_clause", "colon_block",    NULL,
};

static void collect_in(struct walk *w, TSNode list, struct place at);

static void add_param(struct walk *w, TSNode n)
{
    bool variadic = node_is(n, "variadic_parameter");
    TSNode type = node_field(w, n, "type"), value = node_field(w, n, "default_value");
    struct slice name = node_text(w, node_field(w, n, "name"));
    struct param *p;

    if (!variadic && !node_is(n, "simple_parameter") && !node_is(n, "property_promotion_parameter"))
        return;
    if (name.n > 0 && name.p[0] == '&') /* promoted by reference */
        name = slice_trim((struct slice){name.p + 1, name.n - 1});
    if (name.n > 0 && name.p[0] == '$')
        name = (struct slice){name.p + 1, name.n - 1};
    p = walk_param(w, name, variadic ? PARAM_VARIADIC : PARAM_POSITIONAL);
    if (!p)
        return;
    p->by_reference = node_has_child(w, n, "reference_modifier");
    if (!ts_node_is_null(type))
        p->type = node_short(w, type);
    if (!ts_node_is_null(value)) {
        p->default_text = node_short(w, value);
        p->required = false;
    }
}

static void add_function(struct walk *w, TSNode n, struct place at, struct slice above)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    struct slice scope = at.class.p ? at.class : at.space;
    TSNode type = node_field(w, n, "return_type"), body = node_field(w, n, "body"), child;
    struct function *f = walk_function(w, n, node_text(w, node_field(w, n, "name")), scope);

    if (!f)
        return;
    if (!at.class.p)
        f->kind = FUNCTION_PLAIN;
    if (at.class.p && slice_is(f->name, "__construct"))
        f->kind = FUNCTION_CONSTRUCTOR;
    f->is_static = node_has_child(w, n, "static_modifier");
    f->is_generator = node_contains(w, body, "yield_expression", "yield", inner);
    f->candidate = !at.class.p && !at.conditional;
    if (!ts_node_is_null(type))
        f->return_type = node_short(w, type);
    for (kids_of(w, node_field(w, n, "parameters"), &k); kids_next(&k, &child);)
        if (ts_node_is_named(child))
            add_param(w, child);
    walk_params_end(w, f);
    infer_function(w, f, doc_of_comment(&w->m->arena, above));
}

static void add_class(struct walk *w, TSNode n, struct place at)
{
    struct slice name = node_text(w, node_field(w, n, "name"));

    if (name.n == 0)
        return;
    at.class = walk_join(w, at.space, "\\", name);
    at.depth++;
    collect_in(w, node_field(w, n, "body"), at);
}

static void enter_namespace(struct walk *w, TSNode n, struct place *at)
{
    TSNode body = node_field(w, n, "body");
    struct slice name = node_text(w, node_field(w, n, "name"));
    struct place inside = *at;

    inside.space = name.n > 0 ? name : (struct slice){0};
    inside.depth++;
    if (ts_node_is_null(body))
        at->space = inside.space;
    else
        collect_in(w, body, inside);
}

static void collect_one(struct walk *w, TSNode n, struct place *at, struct slice above)
{
    struct place inside = *at;

    if (node_is(n, "function_definition") || node_is(n, "method_declaration")) {
        add_function(w, n, *at, above);
    } else if (node_is_in(n, classes)) {
        add_class(w, n, *at);
    } else if (node_is(n, "namespace_definition")) {
        enter_namespace(w, n, at);
    } else if (node_is(n, "return_statement")) {
        w->m->top_level_return |= !at->class.p;
    } else if (node_is_in(n, blocks)) {
        inside.depth++;
        inside.conditional = true;
        collect_in(w, n, inside);
    }
}

static void collect_in(struct walk *w, TSNode list, struct place at)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    struct slice above;
    TSNode child;

    if (at.depth > INSPECT_SCOPE_MAX)
        return;
    for (kids_of(w, list, &k); kids_next_named(&k, &child, &above);)
        collect_one(w, child, &at, above);
}

static const struct call_form calls = {"function_call_expression", "function", "name", inner};

void collect_php(struct walk *w, TSNode root)
{
    collect_in(w, root, (struct place){0});
    walk_calls(w, root, &calls);
}
