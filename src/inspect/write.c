/* SPDX-License-Identifier: MIT */
#include "inspect/write.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/jw.h"
#include "inspect/parallel.h"

enum {
    TOOL_NAME_MAX = 64,
    CANDIDATES_MAX = 32,
    SCRIPT_FUNCTIONS_MAX = 64,
    PIECE_FUNCTIONS = 64, /* written by one processor at a time */
    NAME_MARKS = 5,       /* comma, quotes, colon and the end */
    HEAD_MAX = 1 << 20,   /* bytes around the functions */
};

/* ---- small ones ---- */

/* Our own names need no escaping, and there are dozens of them for every function: inline, so that
 * their lengths are known. */
static inline __attribute__((always_inline)) void put_name(struct jw *w, const char *name)
{
    size_t n = strlen(name);
    char *p;

    if (w->out->n + n + NAME_MARKS >= w->out->cap && buf_reserve(w->out, n + NAME_MARKS) < 0)
        return;
    p = w->out->p + w->out->n;
    if (w->comma)
        *p++ = ',';
    *p++ = '"';
    memcpy(p, name, n + 1);
    p += n;
    *p++ = '"';
    *p++ = ':';
    w->out->n = (size_t)(p - w->out->p);
    w->comma = false;
}

static inline void put_flag(struct jw *w, const char *name, bool set)
{
    put_name(w, name);
    if (set)
        jw_raw(w, "true", 4);
    else
        jw_raw(w, "false", 5);
}

static void put_number(struct jw *w, const char *name, int64_t v)
{
    put_name(w, name);
    jw_int(w, v);
}

static void put_word(struct jw *w, const char *name, const char *word)
{
    put_name(w, name);
    jw_string(w, word);
}

/* Keys of tenants: any bytes. */
static void put_key(struct jw *w, struct slice name)
{
    jw_bytes(w, name.p, name.n);
    (void)buf_putc(w->out, ':');
    w->comma = false;
}

static void put_text(struct jw *w, const char *key, struct slice s)
{
    put_name(w, key);
    if (s.p)
        jw_bytes(w, s.p, s.n);
    else
        jw_null(w);
}

static void put_raw(struct jw *w, const char *key, struct slice json, const char *otherwise)
{
    put_name(w, key);
    if (json.p)
        jw_raw(w, json.p, json.n);
    else
        jw_raw(w, otherwise, strlen(otherwise));
}

static bool is_native(const struct model *m)
{
    return m->dialect == DIALECT_C || m->dialect == DIALECT_CPP;
}

/* ---- natives ---- */

static void put_native(struct jw *w, const char *key, const struct native *n)
{
    static const char *const classes[] = {"void",   "boolean", "integer", "number",
                                          "string", "array",   "map",     "unsupported"};

    _Static_assert(ARRAY_LEN(classes) == NATIVE_CLASS_COUNT, "every class has a name");
    put_name(w, key);
    if (!n) {
        jw_null(w);
        return;
    }
    jw_object(w);
    put_word(w, "class", classes[n->class]);
    put_text(w, "text", n->text);
    if (n->bits) {
        put_number(w, "bits", n->bits);
        put_flag(w, "signed", n->is_signed);
    }
    put_flag(w, "pointer", n->pointer);
    put_flag(w, "const", n->is_const);
    put_word(w, "reference", n->reference ? n->reference : "");
    if (n->of)
        put_native(w, "of", n->of);
    jw_object_end(w);
}

/* ---- parameters ---- */

static void put_param(struct jw *w, const struct model *m, const struct param *p)
{
    static const char *const kinds[] = {"positional", "positionalOnly", "keyword", "variadic",
                                        "kwargs",     "options",        "block"};

    _Static_assert(ARRAY_LEN(kinds) == PARAM_KIND_COUNT, "every kind has a name");
    jw_object(w);
    put_text(w, "name", p->name);
    put_word(w, "kind", kinds[p->kind]);
    put_name(w, "index");
    if (p->index >= 0)
        jw_int(w, p->index);
    else
        jw_null(w);
    put_flag(w, "required", p->required);
    put_flag(w, "unnamed", p->unnamed);
    put_flag(w, "byReference", p->by_reference);
    put_text(w, "default", p->default_text);
    if (p->default_json.p)
        put_raw(w, "defaultValue", p->default_json, "null");
    put_text(w, "type", p->type);
    put_text(w, "description", p->description);
    if (is_native(m))
        put_native(w, "native", p->native);
    put_raw(w, "schema", p->schema, "{}");
    jw_object_end(w);
}

/* ---- the signature that binding works with ---- */

static const char *native_type(const struct native *n)
{
    static const char *const types[] = {
        [NATIVE_BOOLEAN] = "boolean", [NATIVE_INTEGER] = "number", [NATIVE_NUMBER] = "number",
        [NATIVE_STRING] = "string",   [NATIVE_ARRAY] = "array",    [NATIVE_MAP] = "object",
        [NATIVE_UNSUPPORTED] = NULL,
    };

    return n ? types[n->class] : NULL;
}

static bool takes_options(const struct function *f)
{
    static const char *const names[] = {"option", "options", "opt",   "opts",
                                        "config", "props",   "params"};
    const struct param *last = f->params_n > 0 ? &f->params[f->params_n - 1] : NULL;

    for (size_t i = 0; i < f->params_n; i++)
        if (f->params[i].kind == PARAM_OPTIONS)
            return true;
    for (size_t i = 0; last && last->kind == PARAM_POSITIONAL && i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == last->name.n &&
            strncasecmp(names[i], last->name.p, last->name.n) == 0)
            return true;
    return false;
}

static bool has_kind(const struct function *f, enum param_kind kind)
{
    for (size_t i = 0; i < f->params_n; i++)
        if (f->params[i].kind == kind)
            return true;
    return false;
}

static bool accepts_kwargs(const struct model *m, const struct function *f)
{
    if (m->dialect == DIALECT_PHP)
        return true; /* every parameter can be named */
    return has_kind(f, PARAM_KWARGS) || (m->dialect == DIALECT_RUBY && has_kind(f, PARAM_KEYWORD));
}

static bool is_input(const struct param *p)
{
    return p->kind == PARAM_POSITIONAL || p->kind == PARAM_POSITIONAL_ONLY ||
           p->kind == PARAM_KEYWORD;
}

static void put_signature(struct jw *w, const struct model *m, const struct function *f)
{
    put_name(w, "signature");
    jw_object(w);
    put_name(w, "input");
    jw_object(w);
    for (size_t i = 0; i < f->params_n; i++) {
        const struct param *p = &f->params[i];

        if (!is_input(p))
            continue;
        put_key(w, p->name);
        jw_object(w);
        if (native_type(p->native))
            put_word(w, "type", native_type(p->native));
        put_flag(w, "required", p->required);
        if (p->index >= 0)
            put_number(w, "index", p->index);
        jw_object_end(w);
    }
    jw_object_end(w);
    put_flag(w, "variadic", has_kind(f, PARAM_VARIADIC));
    put_flag(w, "acceptsKwargs", accepts_kwargs(m, f));
    put_flag(w, "hasOptionsParam", m->dialect == DIALECT_JAVASCRIPT && takes_options(f));
    if (is_native(m))
        put_text(w, "returnType", f->return_written);
    put_word(w, "source", "inferred");
    jw_object_end(w);
}

/* ---- the tool for a language model ---- */

static struct slice separator(const struct model *m, const struct function *f)
{
    static const struct slice separators[] = {
        [DIALECT_PYTHON] = SLICE("."), [DIALECT_JAVASCRIPT] = SLICE("."),
        [DIALECT_RUBY] = SLICE("#"),   [DIALECT_PHP] = SLICE("::"),
        [DIALECT_C] = SLICE("::"),     [DIALECT_CPP] = SLICE("::"),
    };

    if (m->dialect == DIALECT_RUBY && f->is_static)
        return SLICE(".");
    if (m->dialect == DIALECT_PHP && f->kind == FUNCTION_PLAIN)
        return SLICE("\\");
    return separators[m->dialect];
}

static void put_qualified(struct jw *w, const struct model *m, const struct function *f)
{
    struct buf name = BUF_INIT(4 * INSPECT_TEXT_MAX);

    if (f->scope.p) {
        (void)buf_put(&name, f->scope.p, f->scope.n);
        (void)buf_put(&name, separator(m, f).p, separator(m, f).n);
    }
    (void)buf_put(&name, f->name.p, f->name.n);
    jw_bytes(w, name.failed || !name.p ? f->name.p : name.p, name.failed ? f->name.n : name.n);
    buf_done(&name);
}

/* [A-Za-z0-9_-]{1,64}: what the makers of language models allow. */
static void put_tool_name(struct jw *w, const struct function *f)
{
    char name[TOOL_NAME_MAX];
    size_t n = 0;

    for (size_t i = 0; i < f->scope.n && n < TOOL_NAME_MAX / 2; i++)
        name[n++] = f->scope.p[i];
    if (n > 0)
        name[n++] = '_';
    for (size_t i = 0; i < f->name.n && n < TOOL_NAME_MAX; i++)
        name[n++] = f->name.p[i];
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '-')
            name[i] = '_';
    put_name(w, "name");
    jw_bytes(w, name, n);
}

/* The schema of the value, with what is known beside it. Its text begins with '{'. */
static void put_property(struct jw *w, const struct param *p)
{
    bool list = p->kind == PARAM_VARIADIC, empty = !p->schema.p || p->schema.n <= 2;

    put_key(w, p->name);
    jw_object(w);
    if (list) {
        put_word(w, "type", "array");
        put_raw(w, "items", p->schema, "{}");
    } else if (!empty) {
        jw_raw(w, p->schema.p + 1, p->schema.n - 2);
    }
    if (p->description.p)
        put_text(w, "description", p->description);
    if (p->default_json.p)
        put_raw(w, "default", p->default_json, "null");
    jw_object_end(w);
}

static bool is_property(const struct param *p)
{
    return p->kind != PARAM_KWARGS && p->kind != PARAM_BLOCK;
}

static void put_tool(struct jw *w, const struct function *f)
{
    struct slice words = f->summary.p && f->summary.n > 0 ? f->summary : SLICE("");

    put_name(w, "tool");
    jw_object(w);
    put_tool_name(w, f);
    put_text(w, "description", words);
    put_name(w, "parameters");
    jw_object(w);
    put_word(w, "type", "object");
    put_name(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < f->params_n; i++)
        if (is_property(&f->params[i]))
            put_property(w, &f->params[i]);
    jw_object_end(w);
    put_name(w, "required");
    jw_array(w);
    for (size_t i = 0; i < f->params_n; i++)
        if (is_property(&f->params[i]) && f->params[i].required)
            jw_bytes(w, f->params[i].name.p, f->params[i].name.n);
    jw_array_end(w);
    put_flag(w, "additionalProperties", has_kind(f, PARAM_KWARGS));
    jw_object_end(w);
    jw_object_end(w);
}

/* ---- functions ---- */

static void put_function(struct jw *w, const struct model *m, const struct function *f)
{
    static const char *const kinds[] = {"function", "method", "constructor",
                                        "arrow",    "lambda", "declaration"};

    _Static_assert(ARRAY_LEN(kinds) == FUNCTION_KIND_COUNT, "every kind has a name");
    jw_object(w);
    put_text(w, "name", f->name);
    put_name(w, "qualifiedName");
    put_qualified(w, m, f);
    put_word(w, "kind", kinds[f->kind]);
    put_text(w, "scope", f->scope);
    put_flag(w, "topLevel", f->top_level);
    put_flag(w, "static", f->is_static);
    put_flag(w, "async", f->is_async);
    put_flag(w, "generator", f->is_generator);
    put_flag(w, "exported", f->exported);
    put_flag(w, "default", f->is_default);
    put_flag(w, "shadowed", f->shadowed);
    if (is_native(m))
        put_flag(w, "contested", f->contested);
    put_number(w, "line", f->line);
    put_number(w, "endLine", f->end_line);
    put_text(w, "docstring", f->doc);
    put_text(w, "refused", f->refused);
    put_text(w, "returnType", f->return_type);
    put_text(w, "returnDescription", f->return_doc);
    if (is_native(m))
        put_native(w, "returnNative", f->return_native);
    put_raw(w, "returnSchema", f->return_schema, "null");
    put_name(w, "parameters");
    jw_array(w);
    for (size_t i = 0; i < f->params_n; i++)
        put_param(w, m, &f->params[i]);
    jw_array_end(w);
    put_signature(w, m, f);
    put_tool(w, f);
    jw_object_end(w);
}

/* ---- which one is meant ---- */

/* By its name; in C and C++ nobody means the program's own entry. */
static bool is_private(const struct model *m, const struct function *f)
{
    if (is_native(m))
        return f->name.n == 4 && memcmp(f->name.p, "main", 4) == 0;
    return (m->dialect == DIALECT_PYTHON || m->dialect == DIALECT_RUBY) && f->name.n > 0 &&
           f->name.p[0] == '_';
}

static bool is_candidate(const struct model *m, const struct function *f, bool with_private)
{
    return f->candidate && !f->shadowed && (with_private || !is_private(m, f));
}

/* Of a script only what it exports or does not use itself. To look for each of many names would
 * take too long. */
static bool is_for_others(const struct model *m, const struct function *f)
{
    return f->exported || (m->n <= SCRIPT_FUNCTIONS_MAX && !model_mentions(m, f));
}

/* Overloads are several functions under one name. */
static bool is_listed(const struct function *const *v, size_t n, const struct function *f)
{
    for (size_t i = 0; i < n; i++)
        if (slice_same(v[i]->name, f->name) && slice_same(v[i]->scope, f->scope))
            return true;
    return false;
}

/* Private ones are meant only when there is no other. */
static void put_detected(struct jw *w, const struct model *m)
{
    const struct function *v[CANDIDATES_MAX];
    bool with_private = true, script = model_is_script(m);
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        if (is_candidate(m, &m->functions[i], false))
            with_private = false;
    put_name(w, "detected");
    jw_object(w);
    put_name(w, "candidates");
    jw_array(w);
    for (size_t i = 0; i < m->n && n < CANDIDATES_MAX; i++) {
        const struct function *f = &m->functions[i];

        if (!is_candidate(m, f, with_private) || is_listed(v, n, f) ||
            (script && !is_for_others(m, f)))
            continue;
        v[n++] = f;
        put_qualified(w, m, f);
    }
    jw_array_end(w);
    put_name(w, "name");
    if (n == 1)
        put_qualified(w, m, v[0]);
    else
        jw_null(w);
    jw_object_end(w);
}

/* ---- what is assumed of a function that the code does not define ---- */

static void put_convention(struct jw *w, const struct model *m)
{
    bool options = m->dialect == DIALECT_JAVASCRIPT, any = !options && !is_native(m);

    put_name(w, "convention");
    jw_object(w);
    put_name(w, "input");
    jw_object(w);
    jw_object_end(w);
    put_flag(w, "variadic", any);
    put_flag(w, "acceptsKwargs", any);
    put_flag(w, "hasOptionsParam", options);
    if (is_native(m))
        put_word(w, "returnType", "int");
    put_word(w, "source", "convention");
    jw_object_end(w);
}

/* ---- all of it ---- */

/* What is before the functions. */
static void put_head(struct jw *w, const struct model *m, bool truncated)
{
    put_word(w, "language", m->language);
    put_name(w, "syntaxError");
    if (m->has_error) {
        jw_object(w);
        put_number(w, "line", m->error_line);
        put_number(w, "column", m->error_column);
        jw_object_end(w);
    } else {
        jw_null(w);
    }
    put_flag(w, "truncated", truncated);
    put_flag(w, "topLevelReturn", m->top_level_return);
    put_detected(w, m);
    put_convention(w, m);
}

/* The functions, in pieces that are written side by side. */
struct pieces {
    const struct model *m;
    struct buf *v; /* owned, as are they */
    size_t n;
};

static void piece_write(void *user, size_t piece)
{
    struct pieces *p = user;
    struct jw w = JW(&p->v[piece]);
    size_t from = piece * PIECE_FUNCTIONS, to = from + PIECE_FUNCTIONS;

    for (size_t i = from; i < to && i < p->m->n && !w.out->failed; i++)
        put_function(&w, p->m, &p->m->functions[i]);
}

/* How many of them fit into an answer, and how long they are together. */
static size_t pieces_fit(const struct pieces *p, size_t *ret_bytes)
{
    size_t bytes = 0, n = 0;

    while (n < p->n && !p->v[n].failed && p->v[n].n + 1 < INSPECT_OUTPUT_MAX - HEAD_MAX - bytes)
        bytes += p->v[n++].n + 1;
    *ret_bytes = bytes;
    return n;
}

static void put_pieces(struct jw *w, const struct pieces *p)
{
    size_t bytes, fit = pieces_fit(p, &bytes);

    (void)buf_reserve(w->out, bytes + HEAD_MAX / PIECE_FUNCTIONS);
    jw_object(w);
    put_head(w, p->m, p->m->truncated || fit < p->n);
    put_name(w, "functions");
    jw_array(w);
    for (size_t i = 0; i < fit; i++)
        jw_raw(w, p->v[i].p, p->v[i].n);
    jw_array_end(w);
    jw_object_end(w);
}

void model_write(const struct model *m, struct buf *out)
{
    struct pieces p = {.m = m, .n = (m->n + PIECE_FUNCTIONS - 1) / PIECE_FUNCTIONS};
    struct jw w = JW(out);

    p.v = calloc(p.n + 1, sizeof *p.v);
    if (!p.v) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < p.n; i++)
        p.v[i] = (struct buf)BUF_INIT(INSPECT_OUTPUT_MAX);
    crew_run(p.n, piece_write, &p);
    put_pieces(&w, &p);
    for (size_t i = 0; i < p.n; i++)
        buf_done(&p.v[i]);
    free(p.v);
}
