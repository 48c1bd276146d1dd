/* SPDX-License-Identifier: MIT */
/* Ruby: methods of the program, of its classes and modules. */
#include "inspect/infer.h"

struct place {
    struct slice scope;
    unsigned depth;
    bool singleton; /* inside class << self */
    bool conditional;
};

static const char *const blocks[] = {
    "if",
    "unless",
    "else",
    "elsif",
    "then",
    "begin",
    "ensure",
    "rescue",
    "body_statement",
    "begin_block",
    "parenthesized_statements",
    NULL,
};
static const char *const wrappers[] = {"argument_list", "call", NULL};

static void collect_in(struct walk *w, TSNode list, struct place at);
static void collect_one(struct walk *w, TSNode n, struct place at, struct slice above);

static void add_param(struct walk *w, TSNode n)
{
    static const struct {
        const char *type;
        enum param_kind kind;
    } kinds[] = {
        {"identifier",             PARAM_POSITIONAL},
        {"optional_parameter",     PARAM_POSITIONAL},
        {"destructured_parameter", PARAM_POSITIONAL},
        {"keyword_parameter",      PARAM_KEYWORD   },
        {"splat_parameter",        PARAM_VARIADIC  },
        {"hash_splat_parameter",   PARAM_KWARGS    },
        {"block_parameter",        PARAM_BLOCK     },
    };
    TSNode value = node_field(w, n, "value");
    struct param *p = NULL;

    for (size_t i = 0; i < ARRAY_LEN(kinds) && !p; i++) {
        if (!node_is(n, kinds[i].type))
            continue;
        p = walk_param(w, node_text(w, i == 0 ? n : node_field(w, n, "name")), kinds[i].kind);
    }
    if (p && !ts_node_is_null(value)) {
        p->default_text = node_short(w, value);
        p->required = false;
    }
    if (node_is(n, "forward_parameter")) { /* def f(...) */
        (void)walk_param(w, SLICE("args"), PARAM_VARIADIC);
        (void)walk_param(w, SLICE("kwargs"), PARAM_KWARGS);
        (void)walk_param(w, SLICE("block"), PARAM_BLOCK);
    }
}

static void add_method(struct walk *w, TSNode n, struct place at, struct slice above)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode object = node_field(w, n, "object"), child;
    struct slice owner = node_text(w, object), scope = at.scope;
    struct function *f;

    if (owner.p && !slice_is(owner, "self"))
        scope = walk_join(w, scope, "::", owner);
    else if (owner.p && !scope.p)
        owner = (struct slice){0}; /* def self.f at the top is callable like any other */
    f = walk_function(w, n, node_text(w, node_field(w, n, "name")), scope);
    if (!f)
        return;
    f->is_static = scope.p && (owner.p || at.singleton);
    f->candidate = !scope.p && !at.conditional;
    if (scope.p && slice_is(f->name, "initialize"))
        f->kind = FUNCTION_CONSTRUCTOR;
    for (kids_of(w, node_field(w, n, "parameters"), &k); kids_next(&k, &child);)
        if (ts_node_is_named(child))
            add_param(w, child);
    walk_params_end(w, f);
    infer_function(w, f, doc_of_comment(&w->m->arena, above));
}

static void add_class(struct walk *w, TSNode n, struct place at)
{
    struct slice name = node_text(w, node_field(w, n, "name"));
    TSNode body = node_field(w, n, "body");

    at.depth++;
    if (node_is(n, "singleton_class"))
        at.singleton = true;
    else
        at.scope = walk_join(w, at.scope, "::", name);
    if (!ts_node_is_null(body) && at.scope.p)
        collect_in(w, body, at);
}

/* private def f: what stands above is said of f. */
static void collect_wrapped(struct walk *w, TSNode n, struct place at, struct slice above)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    if (++at.depth > INSPECT_SCOPE_MAX)
        return;
    for (kids_of(w, n, &k); kids_next(&k, &child);)
        if (ts_node_is_named(child))
            collect_one(w, child, at, above);
}

static void collect_one(struct walk *w, TSNode n, struct place at, struct slice above)
{
    if (node_is(n, "method") || node_is(n, "singleton_method")) {
        add_method(w, n, at, above);
    } else if (node_is(n, "class") || node_is(n, "module") || node_is(n, "singleton_class")) {
        add_class(w, n, at);
    } else if (node_is(n, "return")) {
        w->m->top_level_return |= !at.scope.p;
    } else if (node_is_in(n, wrappers)) {
        collect_wrapped(w, n, at, above);
    } else if (node_is_in(n, blocks)) {
        at.depth++;
        at.conditional = true;
        collect_in(w, n, at);
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
        collect_one(w, child, at, above);
}

/* A bare name may be a call. */
static const char *const closed[] = {"method", "singleton_method", "class",
                                     "module", "singleton_class",  NULL};
static const struct call_form calls = {"identifier", NULL, "identifier", closed};

void collect_ruby(struct walk *w, TSNode root)
{
    collect_in(w, root, (struct place){0});
    walk_calls(w, root, &calls);
}
