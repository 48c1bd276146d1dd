/* SPDX-License-Identifier: MIT */
/*
 * A pattern, a newline, a path. Patterns of letters, '*' and '?' within one segment are also judged
 * by a matcher so simple that it can be believed.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "function/glob.h"

enum { SIMPLE_MAX = 24, STEPS = 1000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool simple(const char *s, const char *more)
{
    size_t n = strlen(s);

    if (n == 0 || n > SIMPLE_MAX)
        return false;
    for (; *s; s++)
        if (!(*s >= 'a' && *s <= 'z') && !strchr(more, *s))
            return false;
    return true;
}

/* can[i][j]: the rest of p from i on takes the rest of s from j on */
static bool believed(const char *p, const char *s)
{
    bool can[SIMPLE_MAX + 2][SIMPLE_MAX + 2] = {0};
    size_t m = strlen(p), n = strlen(s);

    can[m][n] = true;
    for (size_t i = m; i-- > 0;)
        for (size_t j = n + 1; j-- > 0;)
            can[i][j] = p[i] == '*' ? can[i + 1][j] || (j < n && can[i][j + 1])
                                    : j < n && (p[i] == '?' || p[i] == s[j]) && can[i + 1][j + 1];
    return can[0][0];
}

/* -1: the pattern is refused. */
static int judge(const char *pattern, const char *path)
{
    size_t room = GLOB_COMPILE_MAX;
    uint64_t steps = STEPS;
    struct glob_path p;
    struct glob *g;
    struct err e;
    int answer;

    if (glob_compile(pattern, &room, &g, &e) < 0)
        return -1;
    glob_path_set(&p, path);
    answer = (int)glob_match(g, &p, 0, &steps);
    glob_free(g);
    return answer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1), *path;
    int matched;

    assert(text);
    memcpy(text, data, n);
    text[n] = '\0';
    path = memchr(text, '\n', n);
    if (path) {
        *path++ = '\0';
        matched = judge(text, path);
        /* two stars have a meaning of their own */
        if (simple(text, "*?") && simple(path, "") && !strstr(text, "**"))
            assert(matched == (believed(text, path) ? GLOB_YES : GLOB_NO));
    }
    free(text);
    return 0;
}
