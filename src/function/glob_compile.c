/* SPDX-License-Identifier: MIT */
/* From the text of a pattern to its items: braces are expanded first, then every result is cut into
 * segments and compiled. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "function/glob_inner.h"

struct compiler {
    struct glob *g;
    size_t *room;
    struct err *e;
    const char *text;                     /* of the expansion that is compiled */
    uint16_t close[GLOB_PATTERN_MAX + 1]; /* for each '(' of it, where its ')' is; 0: nowhere */
};

static int too_large(struct compiler *c, const char *why)
{
    return err_set(c->e, ERR_CALLER, "pattern too large: %s", why);
}

static int no_memory(struct compiler *c)
{
    return err_set(c->e, ERR_HOST, "out of memory");
}

static int charge(struct compiler *c, size_t bytes)
{
    if (*c->room < bytes)
        return too_large(c, "all patterns of a request together take too long to compile");
    *c->room -= bytes;
    return 0;
}

/* Room for one more. */
static void *grow(void *list, size_t n, size_t *cap, size_t size)
{
    void *more;

    if (n < *cap)
        return list;
    more = reallocarray(list, *cap ? 2 * *cap : 8, size);
    if (more)
        *cap = *cap ? 2 * *cap : 8;
    return more;
}

/* ---- one segment ---- */

static int item_add(struct compiler *c, struct glob_item item, int32_t *ret)
{
    struct glob *g = c->g;
    struct glob_item *list = grow(g->item, g->items, &g->items_cap, sizeof *list);

    if (!list)
        return no_memory(c);
    g->item = list;
    item.inner = item.next = ITEM_NONE;
    list[g->items] = item;
    *ret = (int32_t)g->items++;
    return 0;
}

static int text_add(struct compiler *c, const char *p, size_t n)
{
    return buf_put(&c->g->texts, p, n) < 0 ? no_memory(c) : 0;
}

/* Finds every ')' once, not for each '(' again. */
static void find_closing(struct compiler *c, const char *text, size_t n)
{
    uint16_t open[GLOB_PATTERN_MAX + 1];
    size_t depth = 0;

    c->text = text;
    memset(c->close, 0, (n + 1) * sizeof c->close[0]);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\' && i + 1 < n)
            i++;
        else if (text[i] == '(')
            open[depth++] = (uint16_t)i;
        else if (text[i] == ')' && depth > 0)
            c->close[open[--depth]] = (uint16_t)i;
    }
}

/* At "x(...)": where it closes, or NULL. */
static const char *group_end(const struct compiler *c, struct span p)
{
    uint16_t end;

    if (p.end - p.p < 3 || p.p[1] != '(' || !strchr("?*+@!", *p.p))
        return NULL;
    end = c->close[p.p + 1 - c->text];
    return end > 0 && c->text + end < p.end ? c->text + end : NULL;
}

/* The next alternative of [*at, end); false behind the last. */
static bool alternative(const char **at, const char *end, struct span *ret)
{
    int depth = 0;
    const char *q = *at;

    if (q > end)
        return false;
    while (q < end && (*q != '|' || depth > 0)) {
        if (*q == '\\' && q + 1 < end)
            q++;
        else if (*q == '(')
            depth++;
        else if (*q == ')')
            depth--;
        q++;
    }
    *ret = (struct span){*at, q};
    *at = q + 1;
    return true;
}

static int compile_list(struct compiler *c, struct span p, int depth, int32_t *ret);

static int compile_group(struct compiler *c, struct span p, const char *end, int depth,
                         int32_t *ret)
{
    const char *at = p.p + 2;
    int32_t last = ITEM_NONE, one, inner;
    struct span body;

    if (depth >= GLOB_DEPTH_MAX)
        return too_large(c, "too many groups in groups");
    if (item_add(c, (struct glob_item){.kind = ITEM_GROUP, .group = *p.p}, ret) < 0)
        return -1;
    while (alternative(&at, end, &body)) {
        if (charge(c, 1) < 0 || item_add(c, (struct glob_item){.kind = ITEM_ALTERNATIVE}, &one) < 0)
            return -1;
        if (last == ITEM_NONE)
            c->g->item[*ret].inner = one;
        else
            c->g->item[last].next = one;
        last = one;
        if (compile_list(c, body, depth + 1, &inner) < 0)
            return -1;
        c->g->item[one].inner = inner;
    }
    return 0;
}

/* Bytes of a class; 0: it is not closed, and '[' means itself. */
static size_t class_length(struct span p)
{
    bool match;
    const char *behind = glob_class(p, 0, &match);

    return behind ? (size_t)(behind - p.p) : 0;
}

/* The item at p, and how long it is. Bytes that mean themselves are one each. */
static int compile_item(struct compiler *c, struct span p, int depth, int32_t *ret, size_t *ret_n)
{
    const char *end = group_end(c, p);
    struct glob_item item = {.kind = ITEM_TEXT, .n = 1, .text = (uint32_t)c->g->texts.n};
    size_t n = 1;

    if (end) {
        *ret_n = (size_t)(end + 1 - p.p);
        return compile_group(c, p, end, depth, ret);
    }
    if (*p.p == '[') {
        if (charge(c, (size_t)(p.end - p.p)) < 0)
            return -1;
        n = class_length(p);
    }
    if (*p.p == '[' && n > 0) {
        item.kind = ITEM_CLASS;
        item.n = (uint16_t)n;
    } else if (*p.p == '*') {
        item.kind = ITEM_STAR;
        item.n = 0;
    } else if (*p.p == '?') {
        item.kind = ITEM_ANY;
        item.n = 0;
    } else if (*p.p == '\\' && p.p + 1 < p.end) {
        p.p++;
        n = 2;
    } else {
        n = 1;
    }
    *ret_n = n;
    return text_add(c, p.p, item.n) < 0 ? -1 : item_add(c, item, ret);
}

/* Can the item be part of the one before it? */
static bool joins(struct glob *g, int32_t last, int32_t one)
{
    struct glob_item *a = last == ITEM_NONE ? NULL : &g->item[last], *b = &g->item[one];

    if (!a || a->kind != b->kind)
        return false;
    if (a->kind == ITEM_STAR)
        return true;
    if (a->kind != ITEM_TEXT || a->text + a->n != b->text)
        return false;
    a->n = (uint16_t)(a->n + b->n);
    return true;
}

static int compile_list(struct compiler *c, struct span p, int depth, int32_t *ret)
{
    int32_t last = ITEM_NONE, one;
    size_t n;

    *ret = ITEM_NONE;
    for (; p.p < p.end; p.p += n) {
        if (charge(c, 1) < 0 || compile_item(c, p, depth, &one, &n) < 0)
            return -1;
        if (joins(c->g, last, one)) {
            c->g->items--; /* it is the newest */
            continue;
        }
        if (last == ITEM_NONE)
            *ret = one;
        else
            c->g->item[last].next = one;
        last = one;
    }
    return 0;
}

/* ---- paths ---- */

/* A slash inside parentheses belongs to its group. */
static struct span first_of_pattern(const char *p, const char *end)
{
    int depth = 0;
    const char *q = p;

    while (q < end && (*q != '/' || depth > 0)) {
        if (*q == '\\' && q + 1 < end)
            q++;
        else if (*q == '(')
            depth++;
        else if (*q == ')' && depth > 0)
            depth--;
        q++;
    }
    return (struct span){p, q};
}

static bool is(struct span s, const char *word)
{
    return (size_t)(s.end - s.p) == strlen(word) && memcmp(s.p, word, strlen(word)) == 0;
}

/* NULL: behind the last segment. */
static const char *next_of(struct span s, const char *end)
{
    return s.end < end ? s.end + 1 : NULL;
}

/* "a//b" is "a/b", and "a/../b" is "b": in patterns, not in paths. */
static void tidy(const struct buf *head, struct buf *out)
{
    const char *p = head->p, *end = p + head->n;

    while (p) {
        struct span one = first_of_pattern(p, end);
        const char *from = out->p ? out->p : "", *last = from + out->n;
        struct span before = {.end = last};

        while (last > from && last[-1] != '/')
            last--;
        before.p = last;
        p = next_of(one, end);
        if (one.p == one.end && p && one.p != head->p)
            continue;
        if (is(one, "..") && out->n > 0 && before.p < before.end && !is(before, "..") &&
            !is(before, "**") && !is(before, ".")) {
            out->n = last > from ? (size_t)(last - from) - 1 : 0; /* without the slash */
            continue;
        }
        if (out->n > 0 || (one.p != head->p && *head->p == '/'))
            (void)buf_putc(out, '/');
        (void)buf_put(out, one.p, (size_t)(one.end - one.p));
    }
}

static int compile_part(struct compiler *c, struct span one)
{
    struct glob *g = c->g;
    struct glob_part *list = grow(g->part, g->parts, &g->parts_cap, sizeof *list), part = {0};

    if (!list)
        return no_memory(c);
    g->part = list;
    part.deep = is(one, "**");
    part.lone = is(one, "*");
    part.wild = one.p < one.end && strchr("*?[+@!", *one.p) != NULL;
    if (!part.deep && compile_list(c, one, 0, &part.first) < 0)
        return -1;
    g->part[g->parts++] = part;
    return 0;
}

/* All of one expansion. */
static int compile_path(struct compiler *c, const struct buf *raw)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(GLOB_PATTERN_MAX);
    struct glob *g = c->g;
    struct glob_expansion *list;
    size_t first = g->parts;
    const char *p, *end;

    if (g->expansions == GLOB_EXPANSIONS_MAX)
        return too_large(c, "its braces make too many");
    if (raw->n > 0)
        tidy(raw, &text);
    p = text.p ? text.p : "";
    end = p + text.n;
    find_closing(c, p, text.n);
    while (p) {
        struct span one = first_of_pattern(p, end);

        if (compile_part(c, one) < 0)
            return -1;
        p = next_of(one, end);
    }
    list = grow(g->expansion, g->expansions, &g->expansions_cap, sizeof *list);
    if (!list)
        return no_memory(c);
    g->expansion = list;
    list[g->expansions++] = (struct glob_expansion){(uint32_t)first, (uint32_t)(g->parts - first)};
    return 0;
}

/* ---- braces ---- */

static int expand(struct compiler *c, struct buf *head, struct span rest);

/* p is behind '{': the closing brace, or NULL; tells whether there is a comma at this level. */
static const char *brace_end(struct span p, bool *ret_comma)
{
    int depth = 1;

    *ret_comma = false;
    for (const char *q = p.p; q < p.end; q++) {
        if (*q == '\\' && q + 1 < p.end)
            q++;
        else if (*q == '{')
            depth++;
        else if (*q == '}' && --depth == 0)
            return q;
        else if (*q == ',' && depth == 1)
            *ret_comma = true;
    }
    return NULL;
}

/* What is before the brace, one choice of it, what is behind it. */
static int expand_with(struct compiler *c, struct buf *head, struct span middle, struct span rest)
{
    cleanup_with(buf_done) struct buf tail = BUF_INIT(GLOB_PATTERN_MAX);
    size_t before = head->n;
    const char *p;
    int r;

    (void)buf_put(&tail, middle.p, (size_t)(middle.end - middle.p));
    (void)buf_put(&tail, rest.p, (size_t)(rest.end - rest.p));
    if (tail.failed)
        return too_large(c, "its braces make one that is too long");
    p = tail.p ? tail.p : "";
    r = charge(c, 1 + tail.n);
    if (r == 0)
        r = expand(c, head, (struct span){p, p + tail.n});
    head->n = before;
    return r;
}

static int expand_list(struct compiler *c, struct buf *head, struct span list, struct span rest)
{
    int depth = 0;
    const char *from = list.p;

    for (const char *q = list.p; q <= list.end; q++) {
        if (q < list.end && *q == '\\')
            q++;
        else if (q < list.end && *q == '{')
            depth++;
        else if (q < list.end && *q == '}')
            depth--;
        else if (q >= list.end || (*q == ',' && depth == 0)) {
            if (expand_with(c, head, (struct span){from, q < list.end ? q : list.end}, rest) < 0)
                return -1;
            from = q + 1;
        }
    }
    return 0;
}

/* Of a range, and of any number in it, which may be as wide as it was written. */
enum { RANGE_TEXT = 64 };

/* "1..12", "01..10", "a..e", with an optional "..step". */
static bool is_range(struct span s, long v[3], int *ret_width, bool *ret_letters)
{
    char text[RANGE_TEXT], tail;
    size_t n = (size_t)(s.end - s.p);
    char a, b;

    v[2] = 1;
    *ret_width = 0;
    *ret_letters = false;
    if (n >= sizeof text)
        return false;
    memcpy(text, s.p, n);
    text[n] = '\0';
    if (sscanf(text, "%ld..%ld%c", &v[0], &v[1], &tail) == 2 ||
        sscanf(text, "%ld..%ld..%ld%c", &v[0], &v[1], &v[2], &tail) == 3) {
        const char *dots = strstr(text, "..");

        if (text[0] == '0' && dots - text > 1)
            *ret_width = (int)(dots - text);
        return v[2] != 0;
    }
    if (sscanf(text, "%c..%c%c", &a, &b, &tail) == 2 && isalpha((unsigned char)a) &&
        isalpha((unsigned char)b)) {
        v[0] = (unsigned char)a;
        v[1] = (unsigned char)b;
        *ret_letters = true;
        return true;
    }
    return false;
}

static int expand_range(struct compiler *c, struct buf *head, struct span range, struct span rest)
{
    unsigned long step, left; /* without a sign there is no number that is too far away */
    long v[3];
    int width;
    bool letters;

    if (!is_range(range, v, &width, &letters))
        return 0;
    step = v[2] < 0 ? 0 - (unsigned long)v[2] : (unsigned long)v[2];
    left = v[0] <= v[1] ? (unsigned long)v[1] - (unsigned long)v[0]
                        : (unsigned long)v[0] - (unsigned long)v[1];
    for (long i = v[0];; left -= step) {
        char text[RANGE_TEXT];
        int n = letters ? snprintf(text, sizeof text, "%c", (char)i)
                        : snprintf(text, sizeof text, "%0*ld", width, i);

        if (expand_with(c, head, (struct span){text, text + n}, rest) < 0)
            return -1;
        if (left < step)
            return 0;
        i = (long)((unsigned long)i + (v[0] <= v[1] ? step : 0 - step));
    }
}

/* Takes everything up to the first brace that means something, then each of its choices. */
static int expand(struct compiler *c, struct buf *head, struct span rest)
{
    for (; rest.p < rest.end; rest.p++) {
        bool comma, letters;
        long v[3];
        int width;
        const char *end = NULL;
        struct span inner, behind;

        if (*rest.p == '\\' && rest.p + 1 < rest.end) {
            (void)buf_put(head, rest.p++, 2);
            continue;
        }
        if (*rest.p == '{') {
            if (charge(c, (size_t)(rest.end - rest.p)) < 0)
                return -1;
            end = brace_end((struct span){rest.p + 1, rest.end}, &comma);
        }
        inner = (struct span){rest.p + 1, end};
        behind = (struct span){end ? end + 1 : rest.end, rest.end};
        if (end && comma)
            return expand_list(c, head, inner, behind);
        if (end && is_range(inner, v, &width, &letters))
            return expand_range(c, head, inner, behind);
        (void)buf_putc(head, *rest.p);
    }
    if (head->failed)
        return too_large(c, "its braces make one that is too long");
    return compile_path(c, head);
}

/* ---- the whole ---- */

int glob_compile(const char *pattern, size_t *room, struct glob **ret, struct err *e)
{
    cleanup_with(buf_done) struct buf head = BUF_INIT(GLOB_PATTERN_MAX);
    cleanup_free struct compiler *c = malloc(sizeof *c);
    size_t n = strlen(pattern);
    struct glob *g = calloc(1, sizeof *g);

    if (!c || !g) {
        free(g);
        return err_set(e, ERR_HOST, "out of memory");
    }
    *c = (struct compiler){.g = g, .room = room, .e = e};
    g->texts = BUF_INIT(GLOB_COMPILE_MAX);
    g->never = pattern[0] == '#';
    for (; *pattern == '!'; pattern++, n--)
        g->negate = !g->negate;
    if (n > GLOB_PATTERN_MAX || charge(c, n) < 0 ||
        (!g->never && expand(c, &head, (struct span){pattern, pattern + n}) < 0)) {
        if (n > GLOB_PATTERN_MAX)
            (void)err_set(e, ERR_CALLER, "pattern too large: more than %d bytes", GLOB_PATTERN_MAX);
        glob_free(g);
        return -1;
    }
    *ret = g;
    return 0;
}

void glob_free(struct glob *g)
{
    if (!g)
        return;
    buf_done(&g->texts);
    free(g->item);
    free(g->part);
    free(g->expansion);
    free(g);
}
