/* SPDX-License-Identifier: MIT */
#include "inspect/model.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { ARENA_PART = 64 * 1024, ARENA_ALIGN = 16, FUNCTIONS_FIRST = 64 };

bool slice_is(struct slice s, const char *text)
{
    return s.p && strlen(text) == s.n && memcmp(s.p, text, s.n) == 0;
}

bool slice_same(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

struct slice slice_trim(struct slice s)
{
    while (s.n > 0 && isspace((unsigned char)s.p[0]))
        s.p++, s.n--;
    while (s.n > 0 && isspace((unsigned char)s.p[s.n - 1]))
        s.n--;
    return s;
}

/* ---- memory ---- */

struct arena_part {
    struct arena_part *next; /* owned */
    size_t used, cap;
    _Alignas(ARENA_ALIGN) char bytes[];
};

static struct arena_part *part_add(struct arena *a, size_t n)
{
    size_t cap = n > ARENA_PART ? n : ARENA_PART;
    struct arena_part *p;

    if (a->failed || cap > INSPECT_ARENA_MAX - a->used)
        return NULL;
    p = calloc(1, sizeof *p + cap);
    if (!p)
        return NULL;
    p->cap = cap;
    p->next = a->parts;
    a->parts = p;
    a->used += cap;
    return p;
}

void *arena_take(struct arena *a, size_t n)
{
    struct arena_part *p = a->parts;
    void *taken;

    if (n > INSPECT_ARENA_MAX) {
        a->failed = true;
        return NULL;
    }
    n = (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (!p || p->cap - p->used < n)
        p = part_add(a, n);
    if (!p) {
        a->failed = true;
        return NULL;
    }
    taken = p->bytes + p->used;
    p->used += n;
    return taken;
}

struct slice arena_copy(struct arena *a, const char *p, size_t n)
{
    char *copy = arena_take(a, n + 1);

    if (!copy)
        return (struct slice){0};
    if (n > 0)
        memcpy(copy, p, n);
    return (struct slice){copy, n};
}

void arena_done(struct arena *a)
{
    while (a->parts) {
        struct arena_part *next = a->parts->next;

        free(a->parts);
        a->parts = next;
    }
    *a = (struct arena){0};
}

static void arena_join(struct arena *a, struct arena *from)
{
    struct arena_part **end = &from->parts;

    while (*end)
        end = &(*end)->next;
    *end = a->parts;
    a->parts = from->parts;
    a->used += from->used;
    a->failed |= from->failed || a->used > INSPECT_ARENA_MAX;
    *from = (struct arena){0};
}

/* ---- the list ---- */

static bool model_reserve(struct model *m, size_t n)
{
    size_t cap = m->cap ? 2 * m->cap : FUNCTIONS_FIRST;
    struct function *grown;

    if (m->n + n <= m->cap)
        return true;
    if (cap < m->n + n)
        cap = m->n + n;
    grown = reallocarray(m->functions, cap, sizeof *grown);
    if (!grown)
        return false;
    m->functions = grown;
    m->cap = cap;
    return true;
}

struct function *model_add(struct model *m)
{
    if (m->n == INSPECT_FUNCTIONS_MAX || !model_reserve(m, 1)) {
        m->truncated = true;
        return NULL;
    }
    m->functions[m->n] = (struct function){0};
    return &m->functions[m->n++];
}

void model_join(struct model *m, struct model *from)
{
    size_t room = INSPECT_FUNCTIONS_MAX - m->n, n = from->n < room ? from->n : room;

    m->truncated |= from->truncated || n < from->n;
    m->top_level_return |= from->top_level_return;
    for (size_t i = 0; i < from->called_n; i++)
        model_add_called(m, from->called[i]);
    if (n > 0 && model_reserve(m, n)) {
        memcpy(m->functions + m->n, from->functions, n * sizeof *m->functions);
        m->n += n;
        arena_join(&m->arena, &from->arena);
    } else if (n > 0) {
        m->truncated = true;
    } else if (room > 0) {
        m->arena.failed |= from->arena.failed;
    }
    model_done(from);
}

void model_add_called(struct model *m, struct slice name)
{
    for (size_t i = 0; i < m->called_n; i++)
        if (slice_same(m->called[i], name))
            return;
    if (name.n > 0 && m->called_n < MODEL_CALLED_MAX)
        m->called[m->called_n++] = name;
}

static bool is_called(const struct model *m, struct slice name)
{
    for (size_t i = 0; i < m->called_n; i++)
        if (slice_same(m->called[i], name))
            return true;
    return false;
}

bool model_is_script(const struct model *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->functions[i].top_level && is_called(m, m->functions[i].name))
            return true;
    return false;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

bool model_mentions(const struct model *m, const struct function *f)
{
    const char *p = m->text.p, *end = p + m->text.n, *next;
    uint32_t line = 1;

    if (f->top_level && is_called(m, f->name)) /* perhaps on a line of its own definition */
        return true;
    while ((next = memmem(p, (size_t)(end - p), f->name.p, f->name.n))) {
        for (; p < next; p++)
            line += *p == '\n';
        p = next + f->name.n;
        if ((line < f->line || line > f->end_line) && (next == m->text.p || !is_word(next[-1])) &&
            (p == end || !is_word(*p)))
            return true;
    }
    return false;
}

void model_done(struct model *m)
{
    arena_done(&m->arena);
    free(m->functions);
    m->functions = NULL;
    m->n = m->cap = 0;
}

/* ---- settling ---- */

struct place {
    struct function *f;
    size_t at; /* in the list */
};

static int slice_order(struct slice a, struct slice b)
{
    int r = memcmp(a.p ? a.p : "", b.p ? b.p : "", a.n < b.n ? a.n : b.n);

    return r ? r : (a.n > b.n) - (a.n < b.n);
}

/* By scope, name and place. */
static int place_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int r = slice_order(x->f->scope, y->f->scope);

    if (r == 0)
        r = slice_order(x->f->name, y->f->name);
    return r ? r : (x->at > y->at) - (x->at < y->at);
}

static bool same_types(const struct function *a, const struct function *b)
{
    if (a->params_n != b->params_n)
        return false;
    for (size_t i = 0; i < a->params_n; i++)
        if (!slice_same(a->params[i].type, b->params[i].type))
            return false;
    return true;
}

/* A prototype is often where the comment is. */
static void inherit_doc(struct function *to, const struct function *from)
{
    if (to->doc.p || !from->doc.p || !same_types(to, from))
        return;
    to->doc = from->doc;
    to->summary = from->summary;
    to->return_doc = from->return_doc;
    for (size_t i = 0; i < to->params_n; i++)
        to->params[i].description = from->params[i].description;
}

/* In C++ each default stands in one declaration, mostly the prototype, and is good for all. */
static void inherit_defaults(struct function *to, const struct function *from)
{
    if (!same_types(to, from))
        return;
    for (size_t i = 0; i < to->params_n; i++) {
        if (!to->params[i].required || from->params[i].required)
            continue;
        to->params[i].required = false;
        to->params[i].default_text = from->params[i].default_text;
        to->params[i].default_json = from->params[i].default_json;
    }
}

/* Which one nobody can say. */
static void refuse_overloads(struct place *v, size_t n, bool has_body)
{
    for (size_t i = 0; i < n; i++) {
        struct function *f = v[i].f;

        if (!f->refused.p)
            f->refused = SLICE("overloaded: which of the definitions is meant cannot be told");
        f->shadowed = has_body && f->kind == FUNCTION_DECLARATION;
    }
}

/* One name in one scope. The last definition wins, but a prototype never replaces a definition; in
 * C++ other types make an overload. */
static void settle_group(const struct model *m, struct place *v, size_t n)
{
    bool has_body = false, overloaded = false;
    size_t last = n - 1;

    for (size_t i = 0; i < n; i++) {
        has_body |= v[i].f->kind != FUNCTION_DECLARATION;
        overloaded |= m->dialect == DIALECT_CPP && !same_types(v[0].f, v[i].f);
    }
    if (overloaded) {
        refuse_overloads(v, n, has_body);
        return;
    }
    while (has_body && v[last].f->kind == FUNCTION_DECLARATION)
        last--;
    for (size_t i = n; i-- > 0;) {
        if (i == last)
            continue;
        v[i].f->shadowed = true;
        if (v[i].f->kind == FUNCTION_DECLARATION) {
            inherit_doc(v[last].f, v[i].f);
            inherit_defaults(v[last].f, v[i].f);
        } else if (m->dialect == DIALECT_C) {
            v[last].f->contested |= !same_types(v[last].f, v[i].f) ||
                                    !slice_same(v[last].f->return_type, v[i].f->return_type);
        }
    }
}

void model_settle(struct model *m)
{
    cleanup_free struct place *v = calloc(m->n + 1, sizeof *v);

    if (!v)
        return;
    for (size_t i = 0; i < m->n; i++)
        v[i] = (struct place){&m->functions[i], i};
    qsort(v, m->n, sizeof *v, place_order);
    for (size_t i = 0, end; i < m->n; i = end) {
        for (end = i + 1; end < m->n && slice_same(v[i].f->scope, v[end].f->scope) &&
                          slice_same(v[i].f->name, v[end].f->name);)
            end++;
        if (end - i > 1)
            settle_group(m, v + i, end - i);
    }
}
