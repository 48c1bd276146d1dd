/* SPDX-License-Identifier: MIT */
#include "inspect/inspect.h"

#include <string.h>

#include "core/languages.h"
#include "inspect/parse.h"
#include "inspect/walk.h"
#include "inspect/write.h"

/* Made from the grammars by the build. */
const TSLanguage *tree_sitter_python(void);
const TSLanguage *tree_sitter_javascript(void);
const TSLanguage *tree_sitter_ruby(void);
const TSLanguage *tree_sitter_php(void);
const TSLanguage *tree_sitter_c(void);
const TSLanguage *tree_sitter_cpp(void);

/* clang-format off */
static const struct language {
    const char *name;
    const TSLanguage *(*grammar)(void);
    collect_fn *collect;
} languages[] = {
    [DIALECT_PYTHON]     = {"python",     tree_sitter_python,     collect_python},
    [DIALECT_JAVASCRIPT] = {"javascript", tree_sitter_javascript, collect_javascript},
    [DIALECT_RUBY]       = {"ruby",       tree_sitter_ruby,       collect_ruby},
    [DIALECT_PHP]        = {"php",        tree_sitter_php,        collect_php},
    [DIALECT_C]          = {"c",          tree_sitter_c,          collect_c},
    [DIALECT_CPP]        = {"cpp",        tree_sitter_cpp,        collect_c},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(languages) == DIALECT_COUNT, "every dialect has a row");

static int find(const char *name)
{
    int lang = call_lang_find(name, strlen(name));
    const char *known = lang < 0 ? NULL : call_lang((size_t)lang)->inspect;

    for (size_t i = 0; known && i < ARRAY_LEN(languages); i++)
        if (strcmp(languages[i].name, known) == 0)
            return (int)i;
    return -1;
}

static int fail(struct inspect_error *e, const char *type, const char *message)
{
    *e = (struct inspect_error){.type = type, .message = message};
    return -1;
}

/* ---- the text ---- */

static const char php_tag[] = "<?php ";

/* PHP may come with or without its tag; on the first line, so that lines keep their numbers. */
static bool wants_tag(enum dialect d, const char *text, size_t n)
{
    struct slice s = slice_trim((struct slice){text, n});

    return d == DIALECT_PHP && !(s.n >= 2 && s.p[0] == '<' && s.p[1] == '?');
}

static int add_tag(const char *text, size_t n, struct buf *out, struct inspect_error *e)
{
    if (buf_puts(out, php_tag) < 0 || buf_put(out, text, n) < 0)
        return fail(e, "OutOfMemory", "no memory for the source");
    return 0;
}

/* ---- errors ---- */

/* The first child with a mistake in it; null: none. */
static TSNode wrong_child(struct walk *w, TSNode n)
{
    cleanup_with(kids_done) struct kids k = KIDS_NONE;
    TSNode child;

    for (kids_of(w, n, &k); kids_next(&k, &child);)
        if (ts_node_has_error(child) || ts_node_is_missing(child))
            return child;
    return (TSNode){0};
}

static void find_error(struct walk *w, TSNode root)
{
    TSNode at = root, next;
    TSPoint point;

    if (!ts_node_has_error(root))
        return;
    while (!node_is(at, "ERROR") && !ts_node_is_missing(at)) {
        next = wrong_child(w, at);
        if (ts_node_is_null(next))
            break;
        at = next;
    }
    point = ts_node_start_point(at);
    if (point.row == 0)
        point.column -= point.column < w->skew ? point.column : w->skew;
    w->m->has_error = true;
    w->m->error_line = point.row + 1;
    w->m->error_column = point.column + 1;
}

/* ---- all of it ---- */

/* Of one tree, in the thread that made it. */
static void collect_tree(const struct source *s, TSNode root, struct model *m)
{
    const struct language *l = s->language;
    cleanup_free struct walk *w = calloc(1, sizeof *w);

    if (!w) {
        m->arena.failed = true;
        return;
    }
    w->m = m;
    w->text = s->text.p;
    w->n = s->text.n;
    w->skew = s->skew;
    w->nodes_left = INSPECT_NODES_MAX;
    w->calls_left = INSPECT_CALLS_MAX;
    find_error(w, root);
    l->collect(w, root);
}

static int describe(struct model *m, struct buf *out, struct inspect_error *e)
{
    model_settle(m);
    if (m->arena.failed)
        return fail(e, "OutOfMemory", "the source needs too much memory");
    model_write(m, out);
    return out->failed ? fail(e, "OutputTooLong", "the answer would be too long") : 0;
}

static int inspect_text(const struct language *l, struct slice text, uint32_t skew,
                        const struct inspect_memory *memory, struct buf *out,
                        struct inspect_error *e)
{
    struct model m = {.dialect = (enum dialect)(l - languages), .language = l->name, .text = text};
    struct source s = {.grammar = l->grammar(),
                       .text = text,
                       .memory = memory,
                       .collect = collect_tree,
                       .language = l,
                       .skew = skew};
    int r = source_parse(&s, &m, e);

    if (r == 0)
        r = describe(&m, out, e);
    if (!memory)
        model_done(&m);
    return r;
}

int inspect_source(const char *language, const char *text, size_t n,
                   const struct inspect_memory *memory, struct buf *out,
                   struct inspect_error *ret_error)
{
    int at = find(language);
    struct buf tagged = BUF_INIT(INSPECT_SOURCE_MAX + sizeof php_tag);
    uint32_t skew = 0;
    int r;

    if (at < 0)
        return fail(ret_error, "UnsupportedLanguage", "there is no grammar for this language");
    if (n > INSPECT_SOURCE_MAX)
        return fail(ret_error, "SourceTooLong", "the source is longer than 8 MiB");
    if (wants_tag((enum dialect)at, text, n)) {
        if (add_tag(text, n, &tagged, ret_error) < 0)
            return -1;
        text = tagged.p, n = tagged.n;
        skew = sizeof php_tag - 1;
    }
    r = inspect_text(&languages[at], (struct slice){text, n}, skew, memory, out, ret_error);
    buf_done(&tagged);
    return r;
}
