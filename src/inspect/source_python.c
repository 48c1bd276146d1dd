/* SPDX-License-Identifier: MIT */
/* Python: functions and classes of the module, also inside `if`, `try` and `with` at its level. */
#include "inspect/infer.h"

static const char *const inner[] = {"function_definition", "lambda", "class_definition", NULL};
static const char *const blocks[] = {
    "if_statement",    "elif_clause",    "else_clause",         "try_statement",
    "except_clause",   "finally_clause", "with_statement",      "for_statement",
    "while_statement", "block",          "except_group_clause", NULL,
};

struct place {
    struct slice scope; /* p == NULL: the module */
    unsigned depth;
    bool conditional;
};

static void collect_in(struct walk *w, TSNode list, struct place at);

/* ---- parameters ---- */

struct signature {
    bool after_star; /* keyword-only from here */
    bool skip_first; /* self, cls */
};

static void add_splat(struct walk *w, TSNode splat, struct slice type, struct signature *s)
{
    bool named = node_is(splat, "dictionary_splat_pattern");
    struct param *p = walk_param(w, node_text(w, node_first_named(w, splat)),
                                 named ? PARAM_KWARGS : PARAM_VARIADIC);

    if (p)
        p->type = type;
    s->after_star = true;
}

static void add_plain(struct walk *w, struct slice name, TSNode type, TSNode value,
                      struct signature *s)
{
    struct param *p;

    if (s->skip_first) {
        s->skip_first = false;
        return;
    }
    p = walk_param(w, name, s->after_star ? PARAM_KEYWORD : PARAM_POSITIONAL);
    if (!p)
        return;
    if (!ts_node_is_null(type))
        p->type = node_short(w, type);
    if (!ts_node_is_null(value)) {
        p->default_text = node_short(w, value);
        p->required = false;
    }
}

static void add_typed(struct walk *w, TSNode n, struct signature *s)
{
    TSNode inside = node_first_named(w, n), type = node_field(w, n, "type");

    if (node_is(inside, "list_splat_pattern") || node_is(inside, "dictionary_splat_pattern"))
        add_splat(w, inside, node_short(w, type), s);
    else
        add_plain(w, node_text(w, inside), type, (TSNode){0}, s);
}

static void add_param(struct walk *w, TSNode n, struct signature *s)
{
    if (node_is(n, "identifier"))
        add_plain(w, node_text(w, n), (TSNode){0}, (TSNode){0}, s);
    else if (node_is(n, "typed_parameter"))
        add_typed(w, n, s);
    else if (node_is(n, "default_parameter") || node_is(n, "typed_default_parameter"))
        add_plain(w, node_text(w, node_field(w, n, "name")), node_field(w, n, "type"),
                  node_field(w, n, "value"), s);
    else if (node_is(n, "list_splat_pattern") || node_is(n, "dictionary_splat_pattern"))
        add_splat(w, n, (struct slice){0}, s);
    else if (node_is(n, "keyword_separator"))
        s->after_star = true;
    else if (node_is(n, "tuple_pattern"))
        add_plain(w, (struct slice){0}, (TSNode){0}, (TSNode){0}, s);
    else if (node_is(n, "positional_separator"))
        for (size_t i = 0; i < w->params_n; i++)
            w->params[i].kind = PARAM_POSITIONAL_ONLY;
}

static void add_params(struct walk *w, TSNode list, bool skip_first)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    struct signature s = {.skip_first = skip_first};
    TSNode child;

    for (kids_of(w, list, &k); kids_next(&k, &child);)
        if (ts_node_is_named(child))
            add_param(w, child, &s);
}

/* ---- functions ---- */

static struct slice docstring(struct walk *w, TSNode body)
{
    TSNode first = node_first_named(w, body), text;

    if (!node_is(first, "expression_statement"))
        return (struct slice){0};
    text = node_first_named(w, first);
    return node_is(text, "string") ? doc_of_string(&w->m->arena, node_text(w, text))
                                   : (struct slice){0};
}

static bool has_decorator(struct walk *w, TSNode decorated, const char *name)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, decorated, &k); kids_next(&k, &child);)
        if (node_is(child, "decorator") && slice_is(node_text(w, node_first_named(w, child)), name))
            return true;
    return false;
}

static void add_function(struct walk *w, TSNode n, TSNode decorated, struct place at)
{
    TSNode body = node_field(w, n, "body"), type = node_field(w, n, "return_type");
    bool is_static = !ts_node_is_null(decorated) && has_decorator(w, decorated, "staticmethod");
    struct function *f = walk_function(w, ts_node_is_null(decorated) ? n : decorated,
                                       node_text(w, node_field(w, n, "name")), at.scope);

    if (!f)
        return;
    f->is_static = is_static;
    f->is_async = node_has_child(w, n, "async");
    f->is_generator = node_contains(w, body, "yield", "yield", inner);
    f->candidate = !at.scope.p && !at.conditional;
    if (at.scope.p && slice_is(f->name, "__init__"))
        f->kind = FUNCTION_CONSTRUCTOR;
    if (!ts_node_is_null(type))
        f->return_type = node_short(w, type);
    add_params(w, node_field(w, n, "parameters"), at.scope.p && !is_static);
    walk_params_end(w, f);
    infer_function(w, f, docstring(w, body));
}

static void add_class(struct walk *w, TSNode n, struct place at)
{
    struct slice name = node_text(w, node_field(w, n, "name"));
    struct place inside = {.scope = walk_join(w, at.scope, ".", name),
                           .depth = at.depth + 1,
                           .conditional = at.conditional};

    if (name.n > 0)
        collect_in(w, node_field(w, n, "body"), inside);
}

/* name = lambda ... */
static void add_lambda(struct walk *w, TSNode statement, struct place at)
{
    TSNode assignment = node_first_named(w, statement), left, right;
    struct function *f;

    if (!node_is(assignment, "assignment"))
        return;
    left = node_field(w, assignment, "left");
    right = node_field(w, assignment, "right");
    if (!node_is(left, "identifier") || !node_is(right, "lambda"))
        return;
    f = walk_function(w, statement, node_text(w, left), at.scope);
    if (!f)
        return;
    f->kind = FUNCTION_LAMBDA;
    add_params(w, node_field(w, right, "parameters"), false);
    walk_params_end(w, f);
    infer_function(w, f, (struct slice){0});
}

static void collect_one(struct walk *w, TSNode n, struct place at)
{
    if (node_is(n, "function_definition")) {
        add_function(w, n, (TSNode){0}, at);
    } else if (node_is(n, "class_definition")) {
        add_class(w, n, at);
    } else if (node_is(n, "decorated_definition")) {
        TSNode inside = node_field(w, n, "definition");

        if (node_is(inside, "function_definition"))
            add_function(w, inside, n, at);
        else if (node_is(inside, "class_definition"))
            add_class(w, inside, at);
    } else if (node_is(n, "expression_statement")) {
        add_lambda(w, n, at);
    } else if (node_is(n, "return_statement")) {
        w->m->top_level_return = true;
    } else if (node_is_in(n, blocks)) {
        at.conditional = true;
        at.depth++;
        collect_in(w, n, at);
    }
}

static void collect_in(struct walk *w, TSNode list, struct place at)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    if (at.depth > INSPECT_SCOPE_MAX)
        return;
    for (kids_of(w, list, &k); kids_next(&k, &child);)
        if (ts_node_is_named(child))
            collect_one(w, child, at);
}

static const struct call_form calls = {"call", "function", "identifier", inner};

void collect_python(struct walk *w, TSNode root)
{
    collect_in(w, root, (struct place){0});
    walk_calls(w, root, &calls);
}
