/* SPDX-License-Identifier: MIT */
#include "inspect/parse.h"

#include <pthread.h>
#include <string.h>

#include "base/os.h"

enum { US_PER_MS = 1000 };

/* One part, and the thread that parses it. */
struct part {
    const TSLanguage *language;
    struct slice text; /* all of it; positions are those of the whole */
    TSRange range;     /* what of it belongs to this part */
    bool whole;
    TSTree *tree; /* owned; NULL: it took too long */
    bool unfit;   /* grammar and library do not fit */
    pthread_t thread;
    bool threaded;
};

static void part_parse(struct part *p)
{
    TSParser *parser = ts_parser_new();

    p->unfit = !ts_parser_set_language(parser, p->language) ||
               (!p->whole && !ts_parser_set_included_ranges(parser, &p->range, 1));
    ts_parser_set_timeout_micros(parser, (uint64_t)INSPECT_PARSE_MS * US_PER_MS);
    if (!p->unfit)
        p->tree = ts_parser_parse_string_encoding(parser, NULL, p->text.p, (uint32_t)p->text.n,
                                                  TSInputEncodingUTF8);
    ts_parser_delete(parser);
}

static void *part_main(void *user)
{
    part_parse(user);
    return NULL;
}

/* The first here, the others beside; whoever gets no thread is served afterwards. */
static void parts_parse(struct part *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        v[i].threaded = pthread_create(&v[i].thread, NULL, part_main, &v[i]) == 0;
    part_parse(&v[0]);
    for (size_t i = 1; i < n; i++) {
        if (v[i].threaded)
            (void)pthread_join(v[i].thread, NULL);
        else
            part_parse(&v[i]);
    }
}

/* ---- cutting ---- */

static bool begins_definition(struct slice rest)
{
    static const char *const words[] = {"def ", "class ", "async def ", "@"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (rest.n >= strlen(words[i]) && memcmp(rest.p, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* Where the first definition at the left margin begins behind `from`, but not one below its
 * decorator; the end of the text when there is none. */
static size_t cut_after(struct slice text, size_t from)
{
    bool decorated = true; /* what is before is not known */

    for (;;) {
        const char *end = memchr(text.p + from, '\n', text.n - from);

        if (!end || (size_t)(end - text.p) + 1 >= text.n)
            return text.n;
        from = (size_t)(end - text.p) + 1;
        if (!decorated && begins_definition((struct slice){text.p + from, text.n - from}))
            return from;
        decorated = text.p[from] == '@';
    }
}

static uint32_t rows_in(struct slice text, size_t from, size_t to)
{
    uint32_t rows = 0;

    for (const char *p = text.p + from; (p = memchr(p, '\n', (size_t)(text.p + to - p))); p++)
        rows++;
    return rows;
}

static size_t parts_cut(const TSLanguage *language, struct slice text, struct part *v)
{
    size_t wanted = text.n / PARSE_PART_MIN, n = 0, from = 0;
    size_t most = os_processors() < PARSE_PARTS_MAX ? os_processors() : PARSE_PARTS_MAX;
    uint32_t row = 0;

    if (wanted > most)
        wanted = most;
    while (from < text.n && n < most) {
        size_t near = text.n / (wanted ? wanted : 1) * (n + 1);
        size_t to = n + 1 >= wanted || near <= from ? text.n : cut_after(text, near);
        uint32_t last = row + rows_in(text, from, to);

        v[n++] = (struct part){
            .language = language,
            .text = text,
            .range = {.start_point = {row, 0},
                      .end_point = {last, 0},
                      .start_byte = (uint32_t)from,
                      .end_byte = (uint32_t)to},
        };
        from = to, row = last;
    }
    return from == text.n ? n : 0;
}

/* ---- all of it ---- */

static int fail(struct inspect_error *e, const char *type, const char *message)
{
    *e = (struct inspect_error){.type = type, .message = message};
    return -1;
}

/* 0, -1 with words, or 1: it has to be one piece. */
static int parse_parts(const TSLanguage *language, struct slice text, struct forest *ret)
{
    struct part v[PARSE_PARTS_MAX];
    size_t n = parts_cut(language, text, v);
    bool good = n > 1;

    if (!good)
        return 1;
    parts_parse(v, n);
    for (size_t i = 0; i < n; i++) {
        ret->tree[i] = v[i].tree;
        good &= v[i].tree && !ts_node_has_error(ts_tree_root_node(v[i].tree));
    }
    ret->n = n;
    if (good)
        return 0;
    forest_done(ret);
    return 1;
}

int forest_parse(const TSLanguage *language, enum dialect dialect, struct slice text,
                 struct forest *ret, struct inspect_error *e)
{
    struct part whole = {.language = language, .text = text, .whole = true};

    *ret = (struct forest){0};
    if (dialect == DIALECT_PYTHON && text.n >= 2 * PARSE_PART_MIN &&
        parse_parts(language, text, ret) == 0)
        return 0;
    part_parse(&whole);
    if (whole.unfit)
        return fail(e, "UnsupportedLanguage", "the grammar and the library do not fit");
    if (!whole.tree)
        return fail(e, "ParseTimeout", "the source takes too long to parse");
    ret->tree[0] = whole.tree;
    ret->n = 1;
    return 0;
}

void forest_done(struct forest *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->tree[i])
            ts_tree_delete(f->tree[i]);
    *f = (struct forest){0};
}
