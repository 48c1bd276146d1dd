/* SPDX-License-Identifier: MIT */
#include "inspect/parse.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/os.h"
#include "inspect/parallel.h"

enum {
    US_PER_MS = 1000,
    US_PER_S = 1000000,
    NS_PER_US = 1000,
};

enum part_state {
    PART_NEW,
    PART_GOOD,
    PART_WRONG, /* there is a mistake in it */
    PART_LATE,  /* it took too long */
    PART_UNFIT, /* grammar and library do not fit */
};

struct part {
    const struct source *source;
    TSRange range; /* what of the text belongs to it; positions are those of the whole */
    bool whole;    /* all of it does */
    enum part_state state;
    struct model found; /* owned */
};

static uint64_t now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * US_PER_S + (uint64_t)t.tv_nsec / NS_PER_US;
}

/* ---- one part ---- */

static void part_read(struct part *p, TSTree *tree)
{
    const struct source *s = p->source;
    TSNode root = ts_tree_root_node(tree);

    p->state = ts_node_has_error(root) ? PART_WRONG : PART_GOOD;
    if (p->whole || p->state == PART_GOOD)
        s->collect(s, root, &p->found);
    if (!s->memory)
        ts_tree_delete(tree);
}

static void part_parse(struct part *p, uint64_t deadline_us)
{
    const struct inspect_memory *memory = p->source->memory;
    struct inspect_mark before = {0};
    uint64_t now = now_us();
    TSParser *parser;
    TSTree *tree = NULL;

    p->state = PART_LATE;
    if (now >= deadline_us)
        return;
    if (memory)
        before = memory->mark();
    parser = ts_parser_new();
    if (!ts_parser_set_language(parser, p->source->grammar) ||
        (!p->whole && !ts_parser_set_included_ranges(parser, &p->range, 1)))
        p->state = PART_UNFIT;
    ts_parser_set_timeout_micros(parser, deadline_us - now);
    if (p->state != PART_UNFIT)
        tree = ts_parser_parse_string_encoding(parser, NULL, p->source->text.p,
                                               (uint32_t)p->source->text.n, TSInputEncodingUTF8);
    if (tree)
        part_read(p, tree);
    ts_parser_delete(parser);
    if (memory)
        memory->return_to(before);
}

/* ---- all parts, side by side ---- */

struct parts {
    struct part **v; /* the longest first */
    uint64_t deadline_us;
};

static void parse_one(void *user, size_t i)
{
    struct parts *parts = user;

    if (parts->v[i]->state == PART_NEW)
        part_parse(parts->v[i], parts->deadline_us);
}

static size_t part_length(const struct part *p)
{
    return p->range.end_byte - p->range.start_byte;
}

static int longer_first(const void *a, const void *b)
{
    const struct part *const *x = a, *const *y = b;

    return (part_length(*x) < part_length(*y)) - (part_length(*x) > part_length(*y));
}

/* Are all of them good now? */
static bool parts_parse(struct part *v, size_t n, uint64_t deadline_us)
{
    cleanup_free struct part **order = calloc(n, sizeof(struct part *));
    struct parts parts = {.v = order, .deadline_us = deadline_us};
    bool good = order != NULL;

    if (!order)
        return false;
    for (size_t i = 0; i < n; i++)
        order[i] = &v[i];
    qsort(order, n, sizeof *order, longer_first);
    crew_run(n, parse_one, &parts);
    for (size_t i = 0; i < n; i++)
        good &= v[i].state == PART_GOOD;
    return good;
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

/* Does the line that ends there go on in the next one? */
static bool is_continued(const char *line, const char *end)
{
    if (end > line && end[-1] == '\r')
        end--;
    return end > line && end[-1] == '\\';
}

/* Where the first definition at the left margin begins behind `from`, but not one below its
 * decorator; the end of the text when there is none. */
static size_t cut_after(struct slice text, size_t from)
{
    bool bound = true; /* to the line before; what is before is not known */

    for (;;) {
        const char *line = text.p + from, *end = memchr(line, '\n', text.n - from);

        if (!end || (size_t)(end - text.p) + 1 >= text.n)
            return text.n;
        from = (size_t)(end - text.p) + 1;
        if (!bound && !is_continued(line, end) &&
            begins_definition((struct slice){text.p + from, text.n - from}))
            return from;
        bound = text.p[from] == '@';
    }
}

static uint32_t rows_in(struct slice text, size_t from, size_t to)
{
    uint32_t rows = 0;

    for (const char *p = text.p + from; (p = memchr(p, '\n', (size_t)(text.p + to - p))); p++)
        rows++;
    return rows;
}

static size_t parts_cut(const struct source *s, const struct model *m, struct part *v)
{
    size_t n = 0, from = 0;
    uint32_t row = 0;

    /* every part but the last has the least length, so they fit */
    while (from < s->text.n) {
        size_t to = s->text.n - from <= PARSE_PART_MIN ? s->text.n
                                                       : cut_after(s->text, from + PARSE_PART_MIN);
        uint32_t last = row + rows_in(s->text, from, to);

        v[n++] = (struct part){
            .source = s,
            .range = {.start_point = {row, 0},
                      .end_point = {last, 0},
                      .start_byte = (uint32_t)from,
                      .end_byte = (uint32_t)to},
            .found = {.dialect = m->dialect, .language = m->language},
        };
        from = to, row = last;
    }
    return n;
}

/* One part more belongs to this one. */
static void part_extend(struct part *p, struct part *next)
{
    model_done(&p->found);
    model_done(&next->found);
    p->range.end_point = next->range.end_point;
    p->range.end_byte = next->range.end_byte;
    p->state = PART_NEW;
}

/* Takes back cuts at which there is a mistake before: wrong parts that follow each other become
 * one, and one that stands alone is joined with the part behind it. How many are left. */
static size_t parts_mend(struct part *v, size_t n)
{
    size_t kept = 0, joined = 0;

    for (size_t i = 0; i < n; i++) {
        bool wrong = v[i].state == PART_WRONG;

        if (joined == 1 || (joined > 1 && wrong)) {
            part_extend(&v[kept - 1], &v[i]);
            joined++;
        } else {
            v[kept++] = v[i];
            joined = wrong;
        }
    }
    return kept;
}

/* ---- all of it ---- */

static int fail(struct inspect_error *e, const char *type, const char *message)
{
    *e = (struct inspect_error){.type = type, .message = message};
    return -1;
}

/* Was it possible? */
static bool parse_parts(const struct source *s, struct model *m)
{
    cleanup_free struct part *v = calloc(s->text.n / PARSE_PART_MIN + 1, sizeof *v);
    size_t n = v ? parts_cut(s, m, v) : 0;
    uint64_t deadline_us = now_us() + (uint64_t)INSPECT_PARSE_MS * US_PER_MS;
    bool good;

    if (n < 2)
        return false;
    good = parts_parse(v, n, deadline_us);
    if (!good) {
        n = parts_mend(v, n);
        good = n > 1 && parts_parse(v, n, deadline_us);
    }
    for (size_t i = 0; i < n; i++) {
        if (good)
            model_join(m, &v[i].found);
        model_done(&v[i].found);
    }
    return good;
}

int source_parse(const struct source *s, struct model *m, struct inspect_error *e)
{
    struct part whole = {.source = s, .whole = true, .found = *m};

    if (m->dialect == DIALECT_PYTHON && s->text.n >= (size_t)2 * PARSE_PART_MIN &&
        os_processors() > 1 && parse_parts(s, m))
        return 0;
    part_parse(&whole, now_us() + (uint64_t)INSPECT_PARSE_MS * US_PER_MS);
    *m = whole.found;
    if (whole.state == PART_UNFIT)
        return fail(e, "UnsupportedLanguage", "the grammar and the library do not fit");
    if (whole.state == PART_LATE)
        return fail(e, "ParseTimeout", "the source takes too long to parse");
    return 0;
}
