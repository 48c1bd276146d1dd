/* SPDX-License-Identifier: MIT */
#include "app/execution/artifact.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/utf8.h"

bool artifact_is_reported(const char *path, size_t n)
{
    if (n == 0 || path[0] == '/' || path[0] == '.' || path[n - 1] == '/')
        return false;
    if (memchr(path, '\0', n) || memmem(path, n, "..", 2) || memmem(path, n, "/.", 2) ||
        memmem(path, n, "//", 2))
        return false;
    return utf8_is_valid(path, n);
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n >= m && strcasecmp(s + n - m, tail) == 0;
}

const char *artifact_type(const char *path)
{
    if (strncmp(path, "output/", 7) == 0)
        return "output";
    if (strncmp(path, "logs/", 5) == 0 || ends_with(path, ".log"))
        return "log";
    return "artifact";
}

bool artifact_is_lost(const struct artifact *a)
{
    return a->fate == ARTIFACT_TOO_LARGE || a->fate == ARTIFACT_FAILED;
}

const char *artifact_reason(const struct artifact *a)
{
    return a->fate == ARTIFACT_TOO_LARGE ? "too_large" : "storage";
}

static struct artifact *artifact_new(const char *path, size_t n)
{
    struct artifact *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->path = strndup(path, n);
    if (!a->path) {
        free(a);
        return NULL;
    }
    return a;
}

static bool make_room(struct artifacts *a)
{
    size_t cap = a->cap ? a->cap * 2 : 8;
    struct artifact **v;

    if (a->n < a->cap)
        return true;
    v = reallocarray(a->v, cap, sizeof *v);
    if (!v)
        return false;
    a->v = v;
    a->cap = cap;
    return true;
}

struct artifact *artifacts_add(struct artifacts *a, const char *path, size_t n)
{
    struct artifact *one;

    if (!artifact_is_reported(path, n))
        return NULL;
    one = a->n < a->max && make_room(a) ? artifact_new(path, n) : NULL;
    if (!one) {
        a->left_out++;
        return NULL;
    }
    a->v[a->n++] = one;
    return one;
}

static void artifact_free(struct artifact *a)
{
    free(a->path);
    free(a);
}

void artifacts_remove(struct artifacts *a, size_t i)
{
    artifact_free(a->v[i]);
    memmove(&a->v[i], &a->v[i + 1], (--a->n - i) * sizeof *a->v);
}

static int by_path(const void *x, const void *y)
{
    const struct artifact *const *a = x, *const *b = y;

    return strcmp((*a)->path, (*b)->path);
}

void artifacts_sort(struct artifacts *a)
{
    if (a->n > 1)
        qsort(a->v, a->n, sizeof *a->v, by_path);
}

const struct artifact *artifacts_find(const struct artifacts *a, const char *path)
{
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->v[i]->path, path) == 0)
            return a->v[i];
    }
    return NULL;
}

void artifacts_done(struct artifacts *a)
{
    for (size_t i = 0; i < a->n; i++) {
        artifact_free(a->v[i]);
    }
    free(a->v);
    *a = (struct artifacts){.max = a->max};
}
