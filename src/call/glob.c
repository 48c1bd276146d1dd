/* SPDX-License-Identifier: MIT */
#include "call/glob.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

struct span {
    const char *p, *end;
};

struct matcher {
    unsigned steps, depth;
};

enum { CHARGE_BYTES = 32 }; /* looked at for one step */

static size_t length_at(struct span s)
{
    bool ok;

    return utf8_next(s.p, (size_t)(s.end - s.p), &ok);
}

static uint32_t code_at(struct span s)
{
    size_t n = (size_t)(s.end - s.p), len;
    bool ok;

    len = utf8_next(s.p, n, &ok);
    return ok ? utf8_decode(s.p, len) : 0xfffd;
}

/* ---- classes of characters ---- */

static const struct {
    const char *name;
    int (*is)(int);
} posix[] = {
    {"alpha",  isalpha },
    {"digit",  isdigit },
    {"alnum",  isalnum },
    {"upper",  isupper },
    {"lower",  islower },
    {"space",  isspace },
    {"punct",  ispunct },
    {"xdigit", isxdigit},
    {"blank",  isblank },
    {"cntrl",  iscntrl },
    {"print",  isprint },
    {"graph",  isgraph },
};

/* At "[:name:]" inside a class: its length, or 0. */
static size_t posix_class(struct span p, uint32_t c, bool *ret_match)
{
    for (size_t i = 0; i < sizeof posix / sizeof posix[0]; i++) {
        char text[16];
        int n = snprintf(text, sizeof text, "[:%s:]", posix[i].name);

        if (p.end - p.p >= n && memcmp(p.p, text, (size_t)n) == 0) {
            bool letter = posix[i].is == isalpha || posix[i].is == isalnum ||
                          posix[i].is == isprint || posix[i].is == isgraph;

            *ret_match = *ret_match || (c < 0x80 ? posix[i].is((int)c) != 0 : letter);
            return (size_t)n;
        }
    }
    return 0;
}

static uint32_t class_item(struct span *p)
{
    uint32_t c;

    if (*p->p == '\\' && p->p + 1 < p->end)
        p->p++;
    c = code_at(*p);
    p->p += length_at(*p);
    return c;
}

/* p is at '['. Returns what is behind the class, or NULL when it is not closed. */
static const char *class_match(struct span p, uint32_t c, bool *ret_match)
{
    bool negate = false, match = false, first = true;

    p.p++;
    if (p.p < p.end && (*p.p == '!' || *p.p == '^')) {
        negate = true;
        p.p++;
    }
    for (; p.p < p.end && (*p.p != ']' || first); first = false) {
        size_t n = *p.p == '[' ? posix_class(p, c, &match) : 0;
        uint32_t low, high;

        if (n > 0) {
            p.p += n;
            continue;
        }
        low = high = class_item(&p);
        if (p.end - p.p >= 2 && *p.p == '-' && p.p[1] != ']') {
            p.p++;
            high = class_item(&p);
        }
        match = match || (c >= low && c <= high);
    }
    if (p.p >= p.end)
        return NULL;
    *ret_match = match != negate;
    return p.p + 1;
}

/* ---- one segment ---- */

static bool segment(struct matcher *m, struct span p, struct span s);

/* p is behind "x(": the closing parenthesis, or NULL. */
static const char *group_end(struct span p)
{
    int depth = 1;

    for (const char *q = p.p; q < p.end; q++) {
        if (*q == '\\' && q + 1 < p.end)
            q++;
        else if (*q == '(')
            depth++;
        else if (*q == ')' && --depth == 0)
            return q;
    }
    return NULL;
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

struct nested {
    char kind;
    struct span body, rest, whole; /* whole: the group and what follows */
};

/* Does one alternative match a beginning of s such that `then` holds for what is left? */
static bool group_once(struct matcher *m, const struct nested *g, struct span s, bool again)
{
    const char *at = g->body.p;
    struct span one;

    while (alternative(&at, g->body.end, &one))
        for (const char *cut = s.p; cut <= s.end && m->steps < GLOB_STEPS_MAX; cut++) {
            struct nested more = *g;

            if (!segment(m, one, (struct span){s.p, cut}))
                continue;
            if (segment(m, g->rest, (struct span){cut, s.end}))
                return true;
            more.kind = '*';
            if (again && cut > s.p && group_once(m, &more, (struct span){cut, s.end}, true))
                return true;
        }
    return false;
}

static bool group_match(struct matcher *m, const struct nested *g, struct span s)
{
    switch (g->kind) {
    case '@':
        return group_once(m, g, s, false);
    case '?':
        return segment(m, g->rest, s) || group_once(m, g, s, false);
    case '*':
        return segment(m, g->rest, s) || group_once(m, g, s, true);
    case '+':
        return group_once(m, g, s, true);
    default: /* '!': anything but that, then the rest */
        if (group_once(m, g, s, false))
            return false;
        for (const char *cut = s.p; cut <= s.end && m->steps < GLOB_STEPS_MAX; cut++)
            if (segment(m, g->rest, (struct span){cut, s.end}))
                return true;
        return false;
    }
}

/* Looking for an end may go through all of the pattern, each time. */
static void charge(struct matcher *m, struct span seen)
{
    m->steps += (unsigned)(seen.end - seen.p) / CHARGE_BYTES;
}

static bool is_group(struct matcher *m, struct span p, struct nested *ret)
{
    const char *end;

    if (p.end - p.p < 3 || p.p[1] != '(' || !strchr("?*+@!", *p.p))
        return false;
    charge(m, p);
    end = group_end((struct span){p.p + 2, p.end});
    if (!end)
        return false;
    *ret = (struct nested){
        *p.p, {p.p + 2, end  },
         {end + 1, p.end},
         p
    };
    return true;
}

enum took { TOOK_ONE, TOOK_ALL, TOOK_NOTHING };

/* What takes one character, or a group with everything behind it. */
static enum took take(struct matcher *m, struct span *p, struct span *s)
{
    struct nested g;
    const char *behind = NULL;
    bool match;

    if (p->p == p->end)
        return s->p == s->end ? TOOK_ALL : TOOK_NOTHING;
    if (is_group(m, *p, &g))
        return group_match(m, &g, *s) ? TOOK_ALL : TOOK_NOTHING;
    if (s->p >= s->end)
        return TOOK_NOTHING;
    if (*p->p == '[') {
        behind = class_match(*p, code_at(*s), &match);
        charge(m, (struct span){p->p, behind ? behind : p->end});
    }
    if (behind && !match)
        return TOOK_NOTHING;
    if (behind || *p->p == '?') {
        p->p = behind ? behind : p->p + 1;
        s->p += length_at(*s);
        return TOOK_ONE;
    }
    if (*p->p == '\\' && p->p + 1 < p->end)
        p->p++;
    return *p->p++ == *s->p++ ? TOOK_ONE : TOOK_NOTHING;
}

/* At a '*' that begins no group: goes behind it and its like. */
static bool is_star(struct matcher *m, struct span *p)
{
    struct nested g;

    if (p->p == p->end || *p->p != '*' || is_group(m, *p, &g))
        return false;
    do
        p->p++;
    while (p->p < p->end && *p->p == '*' && !(p->end - p->p > 1 && p->p[1] == '('));
    return true;
}

/* Where something does not match, only the last star may take more: whatever an earlier one took
 * in addition, the last one could have taken as well. */
static bool segment_here(struct matcher *m, struct span p, struct span s)
{
    struct span behind = {0}, from = s; /* the last star, and what it has left */

    while (++m->steps <= GLOB_STEPS_MAX) {
        if (is_star(m, &p)) {
            behind = p;
            from = s;
            continue;
        }
        switch (take(m, &p, &s)) {
        case TOOK_ALL:
            return true;
        case TOOK_ONE:
            continue;
        case TOOK_NOTHING:
            break;
        }
        if (!behind.p || from.p >= from.end)
            return false;
        from.p += length_at(from);
        p = behind;
        s = from;
    }
    return false;
}

/* The whole of s by the whole of p. */
static bool segment(struct matcher *m, struct span p, struct span s)
{
    bool match = false;

    if (m->depth++ < GLOB_DEPTH_MAX)
        match = segment_here(m, p, s);
    m->depth--;
    return match;
}

/* ---- paths ---- */

static struct span first_of(const char *p, const char *end)
{
    const char *slash = memchr(p, '/', (size_t)(end - p));

    return (struct span){p, slash ? slash : end};
}

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

static bool is_wild(struct span p)
{
    return p.p < p.end && strchr("*?[+@!", *p.p) != NULL;
}

static bool segment_match(struct matcher *m, struct span p, struct span s)
{
    if (is_wild(p) && (is(s, ".") || is(s, "..")))
        return false;
    if (is(p, "*") && s.p == s.end)
        return false;
    return segment(m, p, s);
}

/* NULL: behind the last segment. */
static const char *next_of(struct span s, const char *end)
{
    return s.end < end ? s.end + 1 : NULL;
}

/* "**": goes one segment on in what it takes. */
static bool take_more(const char **from, const char *s_end)
{
    struct span part = *from ? first_of(*from, s_end) : (struct span){0};

    if (!*from || is(part, ".") || is(part, ".."))
        return false;
    *from = next_of(part, s_end);
    return *from != NULL;
}

/* As within a segment: only the last "**" may take more. */
static bool path_match(struct matcher *m, const char *p, const char *p_end, const char *s,
                       const char *s_end)
{
    const char *behind = NULL, *from = NULL; /* the last "**", and what it has left */

    while (++m->steps <= GLOB_STEPS_MAX) {
        struct span one = p ? first_of_pattern(p, p_end) : (struct span){0};

        if (!p && (!s || s == s_end)) /* a slash at the end of the path does not matter */
            return true;
        if (p && s && is(one, "**")) {
            from = s;
            behind = p = next_of(one, p_end);
            if (p)
                continue;
            while (take_more(&from, s_end))
                ;
            return from == NULL;
        }
        if (p && s && segment_match(m, one, first_of(s, s_end))) {
            p = next_of(one, p_end);
            s = next_of(first_of(s, s_end), s_end);
            continue;
        }
        if (!behind || !take_more(&from, s_end))
            return false;
        p = behind;
        s = from;
    }
    return false;
}

/* ---- braces ---- */

struct expansion {
    const char *path, *path_end;
    struct matcher *m;
    unsigned made;
};

static bool expand(struct expansion *x, struct buf *head, struct span rest);

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

static bool expand_with(struct expansion *x, struct buf *head, struct span middle, struct span rest)
{
    cleanup_with(buf_done) struct buf tail = BUF_INIT(GLOB_PATTERN_MAX);
    size_t before = head->n;
    bool match;

    (void)buf_put(&tail, middle.p, (size_t)(middle.end - middle.p));
    (void)buf_put(&tail, rest.p, (size_t)(rest.end - rest.p));
    if (tail.failed)
        return false;
    match = expand(x, head, (struct span){tail.p ? tail.p : "", (tail.p ? tail.p : "") + tail.n});
    head->n = before;
    return match;
}

static bool expand_list(struct expansion *x, struct buf *head, struct span list, struct span rest)
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
            if (expand_with(x, head, (struct span){from, q < list.end ? q : list.end}, rest))
                return true;
            if (x->made > GLOB_EXPANSIONS_MAX)
                return false;
            from = q + 1;
        }
    }
    return false;
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

static bool expand_range(struct expansion *x, struct buf *head, struct span range, struct span rest)
{
    unsigned long step, left; /* without a sign there is no number that is too far away */
    long v[3];
    int width;
    bool letters;

    if (!is_range(range, v, &width, &letters))
        return false;
    step = v[2] < 0 ? 0 - (unsigned long)v[2] : (unsigned long)v[2];
    left = v[0] <= v[1] ? (unsigned long)v[1] - (unsigned long)v[0]
                        : (unsigned long)v[0] - (unsigned long)v[1];
    for (long i = v[0];; left -= step) {
        char text[RANGE_TEXT];
        int n = letters ? snprintf(text, sizeof text, "%c", (char)i)
                        : snprintf(text, sizeof text, "%0*ld", width, i);

        if (expand_with(x, head, (struct span){text, text + n}, rest))
            return true;
        if (x->made > GLOB_EXPANSIONS_MAX || left < step)
            return false;
        i = (long)((unsigned long)i + (v[0] <= v[1] ? step : 0 - step));
    }
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

static bool try_one(struct expansion *x, const struct buf *head)
{
    cleanup_with(buf_done) struct buf pattern = BUF_INIT(GLOB_PATTERN_MAX);
    const char *p;

    if (++x->made > GLOB_EXPANSIONS_MAX)
        return false;
    if (head->n > 0)
        tidy(head, &pattern);
    p = pattern.p ? pattern.p : "";
    return path_match(x->m, p, p + pattern.n, x->path, x->path_end);
}

/* Takes everything up to the first brace that means something, then each of its choices. */
static bool expand(struct expansion *x, struct buf *head, struct span rest)
{
    for (; rest.p < rest.end; rest.p++) {
        bool comma, letters;
        long v[3];
        int width;
        const char *end;
        struct span inner, behind;

        if (*rest.p == '\\' && rest.p + 1 < rest.end) {
            (void)buf_put(head, rest.p++, 2);
            continue;
        }
        end = *rest.p == '{' ? brace_end((struct span){rest.p + 1, rest.end}, &comma) : NULL;
        inner = (struct span){rest.p + 1, end};
        behind = (struct span){end ? end + 1 : rest.end, rest.end};
        if (end && comma)
            return expand_list(x, head, inner, behind);
        if (end && is_range(inner, v, &width, &letters))
            return expand_range(x, head, inner, behind);
        (void)buf_putc(head, *rest.p);
    }
    return !head->failed && try_one(x, head);
}

/* ---- the whole ---- */

static char *without_double_slashes(const char *path)
{
    char *copy = malloc(strlen(path) + 1), *to = copy;

    for (; copy && *path; path++)
        if (*path != '/' || path[1] != '/')
            *to++ = *path;
    if (copy)
        *to = '\0';
    return copy;
}

bool glob_match(const char *pattern, const char *path)
{
    cleanup_free char *plain = without_double_slashes(path);
    cleanup_with(buf_done) struct buf head = BUF_INIT(GLOB_PATTERN_MAX);
    struct matcher m = {0};
    bool negate = false, match;
    size_t n = strlen(pattern);

    if (!plain || n > GLOB_PATTERN_MAX || pattern[0] == '#')
        return false;
    for (; *pattern == '!'; pattern++, n--)
        negate = !negate;
    struct expansion x = {plain, plain + strlen(plain), &m, 0};

    match = expand(&x, &head, (struct span){pattern, pattern + n});
    return match != negate && m.steps <= GLOB_STEPS_MAX && x.made <= GLOB_EXPANSIONS_MAX;
}
