/* SPDX-License-Identifier: MIT */
#include "function/glob.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "function/glob_inner.h"

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

const char *glob_class(struct span p, uint32_t c, bool *ret_match)
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

/* ---- sets of positions ---- */

enum { WORD = 64, SET_WORDS = GLOB_PATH_MAX / WORD + 1 };

/* Only as many words as the text needs are used, or even initialised. */
struct set {
    uint64_t w[SET_WORDS];
};

struct matcher {
    const struct glob *g;
    const struct glob_path *path;
    size_t skip;     /* segments of the path that are not looked at */
    const char *s;   /* the segment that is looked at */
    size_t n, words; /* its bytes; words of a set */
    uint64_t *steps; /* left */
    bool out;        /* there were not enough */
};

static bool spend(struct matcher *m, size_t steps)
{
    if (*m->steps < steps) {
        *m->steps = 0;
        m->out = true;
        return false;
    }
    *m->steps -= steps;
    return true;
}

static void set_clear(const struct matcher *m, struct set *s)
{
    memset(s->w, 0, m->words * sizeof s->w[0]);
}

static void set_add(struct set *s, size_t i)
{
    s->w[i / WORD] |= UINT64_C(1) << i % WORD;
}

static bool set_has(const struct set *s, size_t i)
{
    return s->w[i / WORD] >> i % WORD & 1;
}

static void set_join(const struct matcher *m, struct set *s, const struct set *more)
{
    for (size_t i = 0; i < m->words; i++)
        s->w[i] |= more->w[i];
}

/* True: something is left. */
static bool set_without(const struct matcher *m, struct set *s, const struct set *less)
{
    uint64_t any = 0;

    for (size_t i = 0; i < m->words; i++)
        any |= s->w[i] &= ~less->w[i];
    return any != 0;
}

/* The first one from `i` on, below `end`; or `end`. */
static size_t set_next(const struct set *s, size_t i, size_t end)
{
    while (i < end) {
        uint64_t w = s->w[i / WORD] >> i % WORD;

        if (w) {
            i += (size_t)__builtin_ctzll(w);
            return i < end ? i : end;
        }
        i = (i / WORD + 1) * WORD;
    }
    return end;
}

/* ---- one segment ---- */

static void run(struct matcher *m, int32_t at, const struct set *from, struct set *to, bool whole);

static struct span rest_at(const struct matcher *m, size_t i)
{
    return (struct span){m->s + i, m->s + m->n};
}

static size_t character_at(const struct matcher *m, size_t i)
{
    return m->path->ascii ? 1 : length_at(rest_at(m, i));
}

/* Every beginning of a character from `low` on, and the end. */
static void fill_from(const struct matcher *m, size_t low, struct set *to)
{
    set_clear(m, to);
    for (size_t i = low; i < m->n; i += character_at(m, i))
        set_add(to, i);
    set_add(to, m->n);
}

/* `last`: nothing follows, so only what ends at the end of the segment counts. */
static void take_text(struct matcher *m, const struct glob_item *it, bool last,
                      const struct set *from, struct set *to)
{
    const char *text = m->g->texts.p + it->text;
    size_t end = m->n - it->n + 1, i;

    set_clear(m, to);
    if (it->n > m->n)
        return;
    i = set_next(from, last ? end - 1 : 0, end);
    for (; i < end && spend(m, 1); i = set_next(from, i + 1, end))
        if (memcmp(m->s + i, text, it->n) == 0)
            set_add(to, i + it->n);
}

static void take_one(struct matcher *m, const struct glob_item *it, const struct set *from,
                     struct set *to)
{
    const char *text = m->g->texts.p + it->text;
    size_t cost = 1 + it->n / 8u;

    set_clear(m, to);
    for (size_t i = set_next(from, 0, m->n); i < m->n && spend(m, cost);
         i = set_next(from, i + 1, m->n)) {
        bool match = true;

        if (it->kind == ITEM_CLASS)
            (void)glob_class((struct span){text, text + it->n}, code_at(rest_at(m, i)), &match);
        if (match)
            set_add(to, i + character_at(m, i));
    }
}

/* One of the alternatives. */
static void take_either(struct matcher *m, const struct glob_item *it, const struct set *from,
                        struct set *to)
{
    struct set one;

    set_clear(m, to);
    for (int32_t a = it->inner; a != ITEM_NONE && !m->out; a = m->g->item[a].next) {
        run(m, m->g->item[a].inner, from, &one, false);
        set_join(m, to, &one);
    }
}

/* One or more of them, one after another: what is reached for the first time goes on. */
static void take_many(struct matcher *m, const struct glob_item *it, const struct set *from,
                      struct set *to)
{
    struct set edge = *from, next;

    set_clear(m, to);
    do {
        take_either(m, it, &edge, &next);
        edge = next;
        if (!set_without(m, &edge, to))
            return;
        set_join(m, to, &next);
    } while (!m->out);
}

/* Anything but one of the alternatives, then the rest: what the rest reaches from anywhere, without
 * what it reaches behind an alternative. That differs for each position it begins at. */
static void take_other(struct matcher *m, const struct glob_item *it, const struct set *from,
                       struct set *to)
{
    struct set one, behind, wrong;
    size_t end = m->n + 1;

    set_clear(m, to);
    for (size_t i = set_next(from, 0, end); i < end && !m->out; i = set_next(from, i + 1, end)) {
        set_clear(m, &one);
        set_add(&one, i);
        take_either(m, it, &one, &behind);
        run(m, it->next, &behind, &wrong, false);
        fill_from(m, i, &one);
        run(m, it->next, &one, &behind, false);
        (void)set_without(m, &behind, &wrong);
        set_join(m, to, &behind);
    }
}

/* Where a list of items leads to. `whole`: only the end of the segment is asked for. */
static void run(struct matcher *m, int32_t at, const struct set *from, struct set *to, bool whole)
{
    struct set now;

    memcpy(to->w, from->w, m->words * sizeof to->w[0]);
    for (; at != ITEM_NONE; at = m->g->item[at].next) {
        const struct glob_item *it = &m->g->item[at];
        size_t low = set_next(to, 0, m->n + 1);

        if (low > m->n || !spend(m, m->words))
            return;
        memcpy(now.w, to->w, m->words * sizeof now.w[0]);
        switch ((enum item_kind)it->kind) {
        case ITEM_TEXT:
            take_text(m, it, whole && it->next == ITEM_NONE, &now, to);
            break;
        case ITEM_STAR:
            if (!spend(m, (m->n - low) / 8))
                return;
            fill_from(m, low, to);
            break;
        case ITEM_ANY:
        case ITEM_CLASS:
            take_one(m, it, &now, to);
            break;
        case ITEM_GROUP:
            if (it->group == '!') {
                take_other(m, it, &now, to);
                return;
            }
            if (it->group == '*' || it->group == '+')
                take_many(m, it, &now, to);
            else
                take_either(m, it, &now, to);
            if (it->group == '*' || it->group == '?')
                set_join(m, to, &now);
            break;
        case ITEM_ALTERNATIVE: /* only inside of groups */
            break;
        }
    }
}

static bool is_dots(const struct glob_path *p, size_t i)
{
    const char *s = p->text + p->part[i].at;

    return (p->part[i].n == 1 && s[0] == '.') || (p->part[i].n == 2 && s[0] == '.' && s[1] == '.');
}

static bool segment_match(struct matcher *m, const struct glob_part *part, size_t i)
{
    struct set from, to;

    m->s = m->path->text + m->path->part[i].at;
    m->n = m->path->part[i].n;
    m->words = m->n / WORD + 1;
    if ((part->wild && is_dots(m->path, i)) || (part->lone && m->n == 0))
        return false;
    if (part->lone)
        return true;
    set_clear(m, &from);
    set_add(&from, 0);
    run(m, part->first, &from, &to, true);
    return !m->out && set_has(&to, m->n);
}

/* ---- paths ---- */

void glob_path_set(struct glob_path *p, const char *path)
{
    size_t at = 0, end;

    p->text = path;
    p->n = 0;
    p->ascii = true;
    if (strlen(path) > GLOB_PATH_MAX)
        return;
    for (;; at = end + strspn(path + end, "/")) { /* several slashes are one */
        end = at + strcspn(path + at, "/");
        p->part[p->n].at = (uint16_t)at;
        p->part[p->n++].n = (uint16_t)(end - at);
        for (size_t i = at; i < end && p->ascii; i++)
            p->ascii = (unsigned char)path[i] < 0x80;
        if (!path[end])
            return;
    }
}

/* "**" at the end takes at least one segment, which may be empty, and no "." or "..". */
static bool deep_end(const struct matcher *m, const struct set *from)
{
    size_t i = m->path->n;

    while (i > m->skip) {
        i--;
        if (is_dots(m->path, i))
            return false;
        if (set_has(from, i))
            return true;
    }
    return false;
}

static void deep(const struct matcher *m, const struct set *from, struct set *to)
{
    bool on = false;

    for (size_t i = m->skip; i < m->path->n; i++) {
        on = on || set_has(from, i);
        if (on)
            set_add(to, i);
        on = on && !is_dots(m->path, i);
    }
}

/* A slash at the end of the path does not matter. */
static bool is_end(const struct glob_path *p, size_t i)
{
    return i == p->n || (i + 1 == p->n && p->part[i].n == 0);
}

/* The set is of segments of the path: those before which the pattern so far can end. */
static bool path_match(struct matcher *m, const struct glob_expansion *x)
{
    const size_t n = m->path->n, bytes = (n / WORD + 1) * sizeof(uint64_t);
    struct set now, next;

    memset(now.w, 0, bytes);
    set_add(&now, m->skip);
    for (size_t k = 0; k < x->n && !m->out; k++) {
        const struct glob_part *part = &m->g->part[x->first + k];
        bool last = k + 1 == x->n;

        if (part->deep && last)
            return spend(m, 1) && deep_end(m, &now);
        memset(next.w, 0, bytes);
        if (!spend(m, part->deep ? 1 + n / 4 : 1))
            return false;
        if (part->deep)
            deep(m, &now, &next);
        for (size_t i = set_next(&now, last && n >= 2 ? n - 2 : 0, n); !part->deep && i < n;
             i = set_next(&now, i + 1, n))
            if ((!last || is_end(m->path, i + 1)) && segment_match(m, part, i))
                set_add(&next, i + 1);
        memcpy(now.w, next.w, bytes);
    }
    return set_has(&now, n) || (m->path->part[n - 1].n == 0 && set_has(&now, n - 1));
}

enum glob_answer glob_match(const struct glob *g, const struct glob_path *p, size_t skip,
                            uint64_t *steps)
{
    struct matcher m = {.g = g, .path = p, .skip = skip, .steps = steps};
    bool match = false;

    if (g->never)
        return GLOB_NO;
    if (p->n <= skip)
        return GLOB_UNKNOWN;
    for (size_t i = 0; i < g->expansions && !match && !m.out; i++)
        match = path_match(&m, &g->expansion[i]);
    if (m.out)
        return GLOB_UNKNOWN;
    return match != g->negate ? GLOB_YES : GLOB_NO;
}
