/* SPDX-License-Identifier: MIT */
#include "inspect/doc.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f';
}

/* The next line without its end; false behind the last one. */
static bool line_next(struct slice text, size_t *at, struct slice *ret)
{
    const char *end;

    if (!text.p || *at > text.n || (*at == text.n && text.n > 0 && text.p[text.n - 1] == '\n') ||
        (*at == text.n && text.n == 0))
        return false;
    end = *at < text.n ? memchr(text.p + *at, '\n', text.n - *at) : NULL;
    *ret = (struct slice){text.p + *at, (end ? (size_t)(end - text.p) : text.n) - *at};
    *at += ret->n + 1;
    return true;
}

static size_t indent_of(struct slice line)
{
    size_t n = 0;

    while (n < line.n && is_blank(line.p[n]))
        n++;
    return n;
}

static bool starts(struct slice s, const char *with)
{
    size_t n = strlen(with);

    return s.n >= n && memcmp(s.p, with, n) == 0;
}

static struct slice rest(struct slice s, size_t n)
{
    return (struct slice){s.p + n, s.n - n};
}

/* ---- comments ---- */

static struct slice comment_line(struct slice l)
{
    static const char *const marks[] = {"/**", "/*!", "/*",     "///",  "//!",
                                        "//",  "*",   "=begin", "=end", "#"};

    l = slice_trim(l);
    if (l.n >= 2 && l.p[l.n - 1] == '/' && l.p[l.n - 2] == '*')
        l.n -= 2;
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (starts(l, marks[i])) {
            l = rest(l, strlen(marks[i]));
            break;
        }
    if (l.n > 0 && l.p[0] == ' ')
        l = rest(l, 1);
    while (l.n > 0 && is_blank(l.p[l.n - 1]))
        l.n--;
    return l;
}

struct slice doc_of_comment(struct arena *a, struct slice raw)
{
    struct slice line, out;
    size_t at = 0, n = 0;
    char *p;

    if (!raw.p || raw.n == 0)
        return (struct slice){0};
    if (raw.n > INSPECT_TEXT_MAX)
        raw.n = INSPECT_TEXT_MAX;
    p = arena_take(a, raw.n + 2);
    if (!p)
        return (struct slice){0};
    while (line_next(raw, &at, &line)) {
        line = comment_line(line);
        memcpy(p + n, line.p, line.n);
        n += line.n;
        p[n++] = '\n';
    }
    out = slice_trim((struct slice){p, n});
    return out.n > 0 ? out : (struct slice){0};
}

/* ---- docstrings ---- */

/* Undoes the escapes that turn up in docstrings; any other stays as it is written. */
static size_t unescape(struct slice body, char *out)
{
    static const char from[] = "nt\\'\"r", to[] = "\n\t\\'\"\r";
    size_t n = 0;

    for (size_t i = 0; i < body.n; i++) {
        const char *hit = NULL;

        if (body.p[i] == '\\' && i + 1 < body.n) {
            if (body.p[i + 1] == '\n') {
                i++;
                continue;
            }
            hit = body.p[i + 1] ? strchr(from, body.p[i + 1]) : NULL;
        }
        if (hit)
            i++;
        out[n++] = hit ? to[hit - from] : body.p[i];
    }
    return n;
}

/* The least indentation of the lines behind the first; blank ones do not count. */
static size_t margin_of(struct slice text)
{
    struct slice line;
    size_t at = 0, margin = SIZE_MAX;

    (void)line_next(text, &at, &line);
    while (line_next(text, &at, &line)) {
        size_t n = indent_of(line);

        if (n < line.n && n < margin)
            margin = n;
    }
    return margin == SIZE_MAX ? 0 : margin;
}

static struct slice dedent(struct slice text, char *out)
{
    size_t at = 0, n = 0, margin = margin_of(text);
    struct slice line;

    for (bool first = true; line_next(text, &at, &line); first = false) {
        size_t drop = first ? line.n : margin, has = indent_of(line);

        line = rest(line, has < drop ? has : drop);
        while (line.n > 0 && is_blank(line.p[line.n - 1]))
            line.n--;
        memmove(out + n, line.p, line.n);
        n += line.n;
        out[n++] = '\n';
    }
    return slice_trim((struct slice){out, n});
}

struct slice doc_of_string(struct arena *a, struct slice s)
{
    bool raw = false;
    size_t quotes;
    char *p;

    for (; s.n > 0 && s.p[0] != '"' && s.p[0] != '\''; s = rest(s, 1)) {
        raw |= s.p[0] == 'r' || s.p[0] == 'R';
        if (strchr("bBfF", s.p[0]))
            return (struct slice){0}; /* bytes and f-strings are no docstrings */
    }
    quotes = s.n >= 6 && s.p[1] == s.p[0] && s.p[2] == s.p[0] ? 3 : 1;
    if (s.n < 2 * quotes)
        return (struct slice){0};
    s = (struct slice){s.p + quotes, s.n - 2 * quotes};
    if (s.n > INSPECT_TEXT_MAX)
        s.n = INSPECT_TEXT_MAX;
    p = arena_take(a, s.n + 2);
    if (!p)
        return (struct slice){0};
    if (raw)
        memcpy(p, s.p, s.n);
    else
        s.n = unescape(s, p);
    s = dedent((struct slice){p, s.n}, p);
    return s.n > 0 ? s : (struct slice){0};
}

/* ---- reading ---- */

enum section { SECTION_NONE, SECTION_ARGS, SECTION_NUMPY, SECTION_RETURNS, SECTION_OTHER };

struct reading {
    enum dialect dialect;
    struct doc *doc;
    enum section section;
    size_t indent;          /* of the section's heading */
    size_t entry_indent;    /* of the entry being read */
    struct doc_entry *open; /* further lines belong to it; NULL: none */
    bool tagged;            /* the summary is over */
};

static struct doc_entry *entry_add(struct reading *r, struct slice name)
{
    struct doc_entry *e;

    r->open = NULL;
    r->tagged = true;
    if (name.n == 0 || r->doc->n == DOC_ENTRIES_MAX)
        return NULL;
    e = &r->doc->v[r->doc->n++];
    *e = (struct doc_entry){.name = name};
    r->open = e;
    return e;
}

/* A word, or a group in matching brackets, off the front. */
static struct slice word_take(struct slice *s)
{
    struct slice in = slice_trim(*s), word;
    size_t n = 0, depth = 0;

    for (; n < in.n && (depth > 0 || !isspace((unsigned char)in.p[n])); n++) {
        if (strchr("{[<(", in.p[n]) && in.p[n])
            depth++;
        else if (strchr("}]>)", in.p[n]) && in.p[n] && depth > 0)
            depth--;
    }
    word = (struct slice){in.p, n};
    *s = slice_trim(rest(in, n));
    return word;
}

static struct slice without_dash(struct slice s)
{
    s = slice_trim(s);
    if (s.n > 0 && (s.p[0] == '-' || s.p[0] == ':'))
        s = slice_trim(rest(s, 1));
    return s;
}

static struct slice inner(struct slice s)
{
    return s.n >= 2 ? slice_trim((struct slice){s.p + 1, s.n - 2}) : s;
}

/* [name=value] of JSDoc, $name of phpDoc, name: of others */
static struct slice plain_name(struct slice s)
{
    const char *equals;

    if (s.n > 1 && s.p[0] == '[')
        s = inner(s);
    equals = s.n ? memchr(s.p, '=', s.n) : NULL;
    if (equals)
        s.n = (size_t)(equals - s.p);
    while (s.n > 0 && strchr("&.$*", s.p[0]) && s.p[0])
        s = rest(s, 1);
    while (s.n > 0 && (s.p[s.n - 1] == ':' || s.p[s.n - 1] == ','))
        s.n--;
    return s;
}

/* Where the type stands: {type} name; [type] name and name [type] in Ruby; type $name in PHP. */
static void read_param_tag(struct reading *r, struct slice s)
{
    struct slice type = {0}, word = word_take(&s);
    struct doc_entry *e;

    if (word.n > 1 && word.p[0] == '{') {
        type = inner(word);
        word = word_take(&s);
    } else if (r->dialect == DIALECT_RUBY && word.n > 1 && word.p[0] == '[') {
        type = inner(word);
        word = word_take(&s);
    } else if (r->dialect == DIALECT_PHP && word.n > 0 && !memchr(word.p, '$', word.n)) {
        type = word;
        word = word_take(&s);
    }
    e = entry_add(r, plain_name(word));
    if (!e)
        return;
    if (r->dialect == DIALECT_RUBY && !type.p && s.n > 0 && s.p[0] == '[')
        type = inner(word_take(&s));
    e->type = type;
    e->text = without_dash(s);
}

static void read_return_tag(struct reading *r, struct slice s)
{
    struct doc_entry *e = &r->doc->returns;
    struct slice before = s, word = word_take(&s);
    bool grouped = word.n > 1 && (word.p[0] == '{' || word.p[0] == '[');

    r->tagged = true;
    r->open = e;
    if (grouped)
        e->type = inner(word);
    else if (r->dialect == DIALECT_PHP)
        e->type = word;
    e->text = without_dash(grouped || r->dialect == DIALECT_PHP ? s : before);
}

/* :param int name: text */
static void read_sphinx(struct reading *r, struct slice l)
{
    const char *colon = l.n > 1 ? memchr(l.p + 1, ':', l.n - 1) : NULL;
    struct slice head, text, tag, last, type = {0};
    struct doc_entry *e;

    r->tagged = true;
    r->open = NULL;
    if (!colon)
        return;
    head = (struct slice){l.p + 1, (size_t)(colon - l.p) - 1};
    text = slice_trim(rest(l, (size_t)(colon - l.p) + 1));
    tag = word_take(&head);
    last = word_take(&head);
    while (head.n > 0) {
        type = (struct slice){type.p ? type.p : last.p,
                              (size_t)(last.p + last.n - (type.p ? type.p : last.p))};
        last = word_take(&head);
    }
    if (slice_is(tag, "param") || slice_is(tag, "parameter") || slice_is(tag, "arg") ||
        slice_is(tag, "keyword") || slice_is(tag, "key")) {
        e = entry_add(r, plain_name(last));
        if (e)
            e->type = type, e->text = text;
    } else if (slice_is(tag, "type")) {
        for (size_t i = 0; i < r->doc->n; i++)
            if (slice_same(r->doc->v[i].name, last))
                r->doc->v[i].type = text;
    } else if (slice_is(tag, "return") || slice_is(tag, "returns")) {
        r->doc->returns.text = text;
        r->open = &r->doc->returns;
    } else if (slice_is(tag, "rtype")) {
        r->doc->returns.type = text;
    }
}

/* @param, \param and their kin. */
static bool read_tag(struct reading *r, struct slice l)
{
    static const struct {
        const char *name;
        void (*read)(struct reading *r, struct slice s);
    } tags[] = {
        {"param",   read_param_tag },
        {"arg",     read_param_tag },
        {"option",  NULL           },
        {"returns", read_return_tag},
        {"return",  read_return_tag},
    };
    struct slice word, left = l;

    if (l.n < 2 || (l.p[0] != '@' && l.p[0] != '\\') || !isalpha((unsigned char)l.p[1]))
        return false;
    word = rest(word_take(&left), 1);
    r->tagged = true;
    r->open = NULL;
    for (size_t i = 0; i < ARRAY_LEN(tags); i++)
        if (tags[i].read && (slice_is(word, tags[i].name) ||
                             (starts(word, tags[i].name) && word.p[strlen(tags[i].name)] == '[')))
            tags[i].read(r, left);
    return true;
}

/* "Args:" or, underlined, "Parameters". */
static bool read_heading(struct reading *r, struct slice l, size_t indent, bool underlined)
{
    static const struct {
        const char *name;
        enum section section;
    } headings[] = {
        {"args",       SECTION_ARGS   },
        {"arguments",  SECTION_ARGS   },
        {"parameters", SECTION_ARGS   },
        {"params",     SECTION_ARGS   },
        {"returns",    SECTION_RETURNS},
        {"return",     SECTION_RETURNS},
        {"yields",     SECTION_RETURNS},
        {"raises",     SECTION_OTHER  },
        {"example",    SECTION_OTHER  },
        {"examples",   SECTION_OTHER  },
        {"note",       SECTION_OTHER  },
        {"notes",      SECTION_OTHER  },
    };
    bool colon = l.n > 1 && l.p[l.n - 1] == ':';
    size_t n = colon ? l.n - 1 : l.n;

    if (!colon && !underlined)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(headings); i++)
        if (strlen(headings[i].name) == n && strncasecmp(headings[i].name, l.p, n) == 0) {
            r->section = headings[i].section;
            if (underlined && r->section == SECTION_ARGS)
                r->section = SECTION_NUMPY;
            r->indent = indent;
            r->open = NULL;
            r->entry_indent = SIZE_MAX;
            r->tagged = true;
            return true;
        }
    return false;
}

/* "name (type, optional): text" */
static void read_google(struct reading *r, struct slice l)
{
    struct slice left = l, word = word_take(&left), type = {0};
    const char *colon = l.n ? memchr(l.p, ':', l.n) : NULL;
    struct doc_entry *e;

    if (!colon)
        return;
    if (left.n > 1 && left.p[0] == '(') {
        struct slice group = word_take(&left);
        const char *end = memchr(group.p, ')', group.n);
        const char *comma = memmem(group.p, group.n, ", optional", 10);

        if (comma || end)
            type = (struct slice){group.p + 1, (size_t)((comma ? comma : end) - group.p) - 1};
    }
    e = entry_add(r, plain_name(word));
    if (e) {
        e->type = type;
        e->text = slice_trim(rest(l, (size_t)(colon - l.p) + 1));
    }
}

/* "name : type" with the text below */
static void read_numpy(struct reading *r, struct slice l)
{
    const char *colon = l.n ? memchr(l.p, ':', l.n) : NULL;
    size_t n = colon ? (size_t)(colon - l.p) : l.n;
    struct doc_entry *e = entry_add(r, plain_name(slice_trim((struct slice){l.p, n})));
    const char *comma;

    if (!e || !colon)
        return;
    e->type = slice_trim(rest(l, n + 1));
    comma = memmem(e->type.p, e->type.n, ", optional", 10);
    if (comma)
        e->type.n = (size_t)(comma - e->type.p);
}

static void read_more(struct reading *r, struct slice l)
{
    struct slice *text = &r->open->text;

    if (text->n == 0)
        *text = l;
    else
        text->n = (size_t)(l.p + l.n - text->p);
}

static void read_in_section(struct reading *r, struct slice l, size_t indent)
{
    bool deeper = r->entry_indent != SIZE_MAX && indent > r->entry_indent;

    if (r->open && deeper) {
        read_more(r, l);
        return;
    }
    r->entry_indent = indent;
    if (r->section == SECTION_ARGS)
        read_google(r, l);
    else if (r->section == SECTION_NUMPY)
        read_numpy(r, l);
    else if (r->section == SECTION_RETURNS && !r->doc->returns.text.p)
        r->doc->returns.text = l;
}

static bool is_underline(struct slice l)
{
    l = slice_trim(l);
    for (size_t i = 0; i < l.n; i++)
        if (l.p[i] != '-' && l.p[i] != '=')
            return false;
    return l.n >= 3;
}

static void read_line(struct reading *r, struct slice line, struct slice following)
{
    size_t indent = indent_of(line);
    struct slice l = slice_trim(line);

    if (l.n == 0) {
        if (r->section == SECTION_NONE)
            r->open = NULL;
    } else if (is_underline(line)) {
        return;
    } else if (read_tag(r, l)) {
        r->section = SECTION_NONE;
    } else if (l.p[0] == ':' && l.n > 1 && isalpha((unsigned char)l.p[1])) {
        r->section = SECTION_NONE;
        read_sphinx(r, l);
    } else if (read_heading(r, l, indent, is_underline(following))) {
        return;
    } else if (r->section != SECTION_NONE && (indent > r->indent || r->section == SECTION_NUMPY)) {
        read_in_section(r, l, indent);
    } else if (r->open) {
        read_more(r, l);
    } else {
        r->section = SECTION_NONE;
    }
}

/* Runs of white space become one blank. */
static struct slice in_one_line(struct arena *a, struct slice s)
{
    char *p;
    size_t n = 0;

    s = slice_trim(s);
    if (!s.p || s.n == 0)
        return (struct slice){0};
    p = arena_take(a, s.n + 1);
    if (!p)
        return (struct slice){0};
    for (size_t i = 0; i < s.n; i++) {
        if (!isspace((unsigned char)s.p[i]))
            p[n++] = s.p[i];
        else if (n > 0 && p[n - 1] != ' ')
            p[n++] = ' ';
    }
    return (struct slice){p, n};
}

void doc_read(struct arena *a, enum dialect dialect, struct slice text, struct doc *ret)
{
    struct reading r = {.dialect = dialect, .doc = ret, .entry_indent = SIZE_MAX};
    struct slice line, following;
    size_t at = 0, end = 0;

    *ret = (struct doc){0};
    while (line_next(text, &at, &line)) {
        size_t peek = at;

        following = (struct slice){0};
        (void)line_next(text, &peek, &following);
        read_line(&r, line, following);
        if (!r.tagged)
            end = (size_t)(line.p + line.n - text.p);
    }
    ret->summary = slice_trim((struct slice){text.p, end});
    for (size_t i = 0; i < ret->n; i++)
        ret->v[i].text = in_one_line(a, ret->v[i].text);
    ret->returns.text = in_one_line(a, ret->returns.text);
}

const struct doc_entry *doc_find(const struct doc *d, struct slice name)
{
    for (size_t i = 0; i < d->n; i++)
        if (slice_same(d->v[i].name, name))
            return &d->v[i];
    return NULL;
}
