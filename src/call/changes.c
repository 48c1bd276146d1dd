/* SPDX-License-Identifier: MIT */
#include "call/changes.h"

#include <stdlib.h>
#include <string.h>

const char *change_operation(enum change_type t)
{
    static const char *const names[] = {"create", "modify", "delete"};

    _Static_assert(ARRAY_LEN(names) == CHANGE_TYPES, "every type has a name");
    return names[t];
}

int changes_init(struct changes *c, const struct call_file *before, size_t n)
{
    *c = (struct changes){.before = before, .before_n = n, .content_left = CHANGES_CONTENT_MAX};
    c->seen = calloc(n + 1, sizeof *c->seen);
    return c->seen ? 0 : -1;
}

void changes_done(struct changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].path);
        buf_done(&c->v[i].content);
    }
    free(c->v);
    free(c->seen);
    *c = (struct changes){0};
}

ssize_t changes_saw(struct changes *c, const char *path)
{
    /* The last of equal paths is the one that was written last. */
    for (size_t i = c->before_n; i-- > 0;)
        if (strcmp(c->before[i].path, path) == 0) {
            c->seen[i] = true;
            return (ssize_t)i;
        }
    return -1;
}

struct change *changes_add(struct changes *c, enum change_type type, const char *path,
                           ssize_t before)
{
    struct change *v;
    char *copy;

    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 16;

        v = c->n < CHANGES_MAX ? reallocarray(c->v, cap, sizeof *v) : NULL;
        if (!v) {
            c->left_out++;
            return NULL;
        }
        c->v = v;
        c->cap = cap;
    }
    copy = strdup(path);
    if (!copy) {
        c->left_out++;
        return NULL;
    }
    v = &c->v[c->n++];
    *v = (struct change){
        .type = type, .path = copy, .before = before < 0 ? NULL : &c->before[before]};
    return v;
}

static int by_path(const void *x, const void *y)
{
    const struct change *a = x, *b = y;

    return strcmp(a->path, b->path);
}

static bool is_repeated(const struct changes *c, size_t i)
{
    for (size_t k = i + 1; k < c->before_n; k++)
        if (strcmp(c->before[k].path, c->before[i].path) == 0)
            return true;
    return false;
}

void changes_complete(struct changes *c)
{
    for (size_t i = 0; i < c->before_n; i++)
        if (!c->seen[i] && !is_repeated(c, i))
            (void)changes_add(c, CHANGE_DELETED, c->before[i].path, (ssize_t)i);
    if (c->n > 1)
        qsort(c->v, c->n, sizeof *c->v, by_path);
}
