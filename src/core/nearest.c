/* SPDX-License-Identifier: MIT */
#include "core/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum {
    HALVES = 2,      /* of an edit: how near a name is counts in them */
    ABBREVIATED = 3, /* farther than one edit, nearer than two */
};

static size_t plain_name(const char *name, char out[NEAREST_NAME_MAX])
{
    size_t n = 0;

    for (; *name && n < NEAREST_NAME_MAX - 1; name++)
        if (isalnum((unsigned char)*name))
            out[n++] = (char)tolower((unsigned char)*name);
    out[n] = '\0';
    return n;
}

/* Insertions, deletions, substitutions and swaps of neighbours that lead from one to the other. */
static size_t distance(const char *a, size_t a_n, const char *b, size_t b_n)
{
    size_t rows[3][NEAREST_NAME_MAX + 1], *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t k = 0; k <= b_n; k++)
        last[k] = k;
    for (size_t i = 1; i <= a_n; i++) {
        size_t *oldest = before;

        now[0] = i;
        for (size_t k = 1; k <= b_n; k++) {
            size_t best = last[k - 1] + (a[i - 1] != b[k - 1]);

            if (last[k] + 1 < best)
                best = last[k] + 1;
            if (now[k - 1] + 1 < best)
                best = now[k - 1] + 1;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                before[k - 2] + 1 < best)
                best = before[k - 2] + 1;
            now[k] = best;
        }
        before = last;
        last = now;
        now = oldest;
    }
    return last[b_n];
}

/* "cmd" in "command", "lang" in "language": the letters of the short one, in order. */
static bool abbreviates(const char *name, const char *whole)
{
    if (*name != *whole || strlen(name) < 3)
        return false;
    for (; *whole; whole++)
        name += *name == *whole;
    return *name == '\0';
}

void nearest_begin(struct nearest *n, const char *wrong)
{
    n->wrong_n = plain_name(wrong, n->wrong);
    n->least = HALVES * (2 + n->wrong_n / 4);
    n->found = NULL;
}

size_t nearest_distance(const struct nearest *n, const char *known)
{
    char plain[NEAREST_NAME_MAX];
    size_t plain_n = plain_name(known, plain);

    return distance(n->wrong, n->wrong_n, plain, plain_n);
}

void nearest_look(struct nearest *n, const char *known)
{
    char plain[NEAREST_NAME_MAX];
    size_t plain_n = plain_name(known, plain);
    size_t d = distance(n->wrong, n->wrong_n, plain, plain_n);

    if (d >= plain_n || d >= n->wrong_n) /* nothing is left of it */
        d = NEAREST_NAME_MAX;
    d *= HALVES;
    if (d > ABBREVIATED && (abbreviates(plain, n->wrong) || abbreviates(n->wrong, plain) ||
                            (n->wrong_n > 3 && strstr(plain, n->wrong))))
        d = ABBREVIATED;
    if (d < n->least) {
        n->least = d;
        n->found = known;
    }
}
