/* SPDX-License-Identifier: MIT */
/*
 * A pattern, a newline, a path. Patterns of letters, '*' and '?' within one segment are also judged
 * by a matcher so simple that it can be believed.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "call/glob.h"

enum { SIMPLE_MAX = 24 };

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

static bool believed(const char *p, const char *s)
{
    if (*p == '\0')
        return *s == '\0';
    if (*p == '*')
        return believed(p + 1, s) || (*s && believed(p, s + 1));
    return *s && (*p == '?' || *p == *s) && believed(p + 1, s + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1), *path;
    bool matched;

    assert(text);
    memcpy(text, data, n);
    text[n] = '\0';
    path = memchr(text, '\n', n);
    if (path) {
        *path++ = '\0';
        matched = glob_match(text, path);
        assert(matched == glob_match(text, path));
        /* two stars have a meaning of their own */
        if (simple(text, "*?") && simple(path, "") && !strstr(text, "**"))
            assert(matched == believed(text, path));
    }
    free(text);
    return 0;
}
