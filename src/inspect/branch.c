/* SPDX-License-Identifier: MIT */
#include "inspect/branch.h"

#include <stdlib.h>
#include <string.h>

enum { EXPRESSION_DEPTH_MAX = 16, NUMBER_MAX = 24 };

/* Of every compiler that we call, and of none. */
static const struct {
    const char *name;
    enum truth defined;
    bool cpp_only;
} predefined[] = {
    {"__GNUC__",    TRUTH_YES, false},
    {"__STDC__",    TRUTH_YES, false},
    {"__cplusplus", TRUTH_YES, true },
    {"_WIN32",      TRUTH_NO,  false},
    {"_WIN64",      TRUTH_NO,  false},
    {"_MSC_VER",    TRUTH_NO,  false},
    {"__APPLE__",   TRUTH_NO,  false},
};

/* ---- names ---- */

/* m->n: there is none of that name. */
static size_t macro_find(const struct macros *m, struct slice name)
{
    size_t i = 0;

    while (i < m->n && !slice_same(m->v[i].name, name))
        i++;
    return i;
}

static void macro_set(struct macros *m, struct macro new)
{
    size_t at = macro_find(m, new.name);

    if (m->open > 0)
        new.defined = TRUTH_OPEN, new.value = (struct slice){0};
    if (at == MACROS_MAX) {
        m->lost = true;
        return;
    }
    m->v[at] = new;
    m->n += at == m->n;
}

/* There may be blanks behind the "#". */
static bool is_undef(struct slice directive)
{
    return directive.n > 5 && memcmp(directive.p + directive.n - 5, "undef", 5) == 0;
}

void macros_learn(struct macros *m, struct walk *w, TSNode n)
{
    if (node_is(n, "preproc_def") || node_is(n, "preproc_function_def"))
        macro_set(m,
                  (struct macro){.name = node_text(w, node_field(w, n, "name")),
                                 .defined = TRUTH_YES,
                                 .value = node_is(n, "preproc_def")
                                              ? slice_trim(node_text(w, node_field(w, n, "value")))
                                              : (struct slice){0}});
    else if (node_is(n, "preproc_call") && is_undef(node_text(w, node_field(w, n, "directive"))))
        macro_set(m, (struct macro){.name = slice_trim(node_text(w, node_field(w, n, "argument"))),
                                    .defined = TRUTH_NO});
}

static enum truth is_defined(const struct macros *m, const struct walk *w, struct slice name)
{
    size_t at = macro_find(m, name);

    if (m->lost)
        return TRUTH_OPEN;
    if (at < m->n)
        return m->v[at].defined;
    for (size_t i = 0; i < ARRAY_LEN(predefined); i++)
        if (slice_is(name, predefined[i].name))
            return predefined[i].cpp_only && w->m->dialect != DIALECT_CPP ? TRUTH_NO
                                                                          : predefined[i].defined;
    return TRUTH_OPEN;
}

/* ---- expressions ---- */

static enum truth truth_not(enum truth t)
{
    return t == TRUTH_OPEN ? t : t == TRUTH_YES ? TRUTH_NO : TRUTH_YES;
}

/* Is this number other than 0? */
static enum truth number_truth(struct slice s)
{
    char text[NUMBER_MAX], *end;
    unsigned long long n;

    if (s.n == 0 || s.n >= sizeof text || s.p[0] < '0' || s.p[0] > '9')
        return TRUTH_OPEN;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    n = strtoull(text, &end, 0);
    if (end[strspn(end, "uUlL")] != '\0')
        return TRUTH_OPEN;
    return n != 0 ? TRUTH_YES : TRUTH_NO;
}

static enum truth name_truth(const struct macros *m, const struct walk *w, struct slice name)
{
    size_t at = macro_find(m, name);
    enum truth defined = is_defined(m, w, name);

    if (defined == TRUTH_YES && at < m->n)
        return number_truth(m->v[at].value);
    return defined; /* those of the compiler are all more than 0 */
}

static enum truth expression_truth(const struct macros *m, struct walk *w, TSNode n,
                                   unsigned depth);

static enum truth pair_truth(const struct macros *m, struct walk *w, TSNode n, unsigned depth)
{
    struct slice sign = node_text(w, node_field(w, n, "operator"));
    enum truth decides = slice_is(sign, "&&") ? TRUTH_NO : TRUTH_YES, a, b;

    if (decides == TRUTH_YES && !slice_is(sign, "||"))
        return TRUTH_OPEN;
    a = expression_truth(m, w, node_field(w, n, "left"), depth);
    b = expression_truth(m, w, node_field(w, n, "right"), depth);
    if (a == decides || b == decides)
        return decides;
    return a == TRUTH_OPEN || b == TRUTH_OPEN ? TRUTH_OPEN : truth_not(decides);
}

static enum truth expression_truth(const struct macros *m, struct walk *w, TSNode n, unsigned depth)
{
    if (++depth > EXPRESSION_DEPTH_MAX)
        return TRUTH_OPEN;
    if (node_is(n, "number_literal"))
        return number_truth(node_text(w, n));
    if (node_is(n, "identifier"))
        return name_truth(m, w, node_text(w, n));
    if (node_is(n, "preproc_defined"))
        return is_defined(m, w, node_text(w, node_child(w, n, "identifier")));
    if (node_is(n, "parenthesized_expression"))
        return expression_truth(m, w, node_first_named(w, n), depth);
    if (node_is(n, "binary_expression"))
        return pair_truth(m, w, n, depth);
    if (node_is(n, "unary_expression") && slice_is(node_text(w, node_field(w, n, "operator")), "!"))
        return truth_not(expression_truth(m, w, node_field(w, n, "argument"), depth));
    return TRUTH_OPEN;
}

/* #ifndef or #elifndef: the first child, and no other is looked at, there may be many. */
static bool asks_for_none(struct walk *w, TSNode n)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    kids_of(w, n, &k);
    return kids_next(&k, &child) && (node_is(child, "#ifndef") || node_is(child, "#elifndef"));
}

enum truth branch_truth(const struct macros *m, struct walk *w, TSNode n)
{
    enum truth defined;

    if (node_is(n, "preproc_if") || node_is(n, "preproc_elif"))
        return expression_truth(m, w, node_field(w, n, "condition"), 0);
    if (!node_is(n, "preproc_ifdef") && !node_is(n, "preproc_elifdef"))
        return TRUTH_YES;
    defined = is_defined(m, w, node_text(w, node_field(w, n, "name")));
    return asks_for_none(w, n) ? truth_not(defined) : defined;
}
