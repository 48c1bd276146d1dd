/* SPDX-License-Identifier: MIT */
#include "function/changes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const char *change_operation(enum change_type t)
{
    static const char *const names[] = {"create", "modify", "delete"};

    _Static_assert(ARRAY_LEN(names) == CHANGE_TYPES, "every type has a name");
    return names[t];
}

/* Equal paths in the order they came: the last one is the one that was written last. */
static int by_path(const void *x, const void *y)
{
    const struct call_file *const *a = x, *const *b = y;
    int r = strcmp((*a)->path, (*b)->path);

    return r ? r : (*a > *b) - (*a < *b);
}

int changes_init(struct changes *c, const struct call_file *before, size_t n)
{
    *c = (struct changes){.before = before, .before_n = n, .content_left = CHANGES_CONTENT_MAX};
    c->seen = calloc(n + 1, sizeof *c->seen);
    c->now = calloc(n + 1, sizeof *c->now);
    c->by_path = calloc(n + 1, sizeof *c->by_path);
    if (!c->seen || !c->now || !c->by_path) {
        changes_done(c);
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        c->by_path[i] = &before[i];
    if (n > 1)
        qsort(c->by_path, n, sizeof *c->by_path, by_path);
    return 0;
}

void changes_done(struct changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].path);
        buf_done(&c->v[i].content);
    }
    free(c->v);
    free(c->seen);
    free(c->now);
    free(c->by_path);
    *c = (struct changes){0};
}

ssize_t changes_find(const struct changes *c, const char *path)
{
    size_t low = 0, high = c->before_n;

    while (low < high) { /* where the first one behind it would be */
        size_t middle = low + (high - low) / 2;

        if (strcmp(c->by_path[middle]->path, path) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && strcmp(c->by_path[low - 1]->path, path) == 0 ? c->by_path[low - 1] - c->before
                                                                   : -1;
}

ssize_t changes_saw(struct changes *c, const char *path)
{
    ssize_t i = changes_find(c, path);

    if (i >= 0)
        c->seen[i] = true;
    return i;
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

static int by_name(const void *x, const void *y)
{
    const struct change *a = x, *b = y;

    return strcmp(a->path, b->path);
}

/* /tmp is not scanned: what is there is neither seen nor missed. */
static bool is_missed(const struct changes *c, size_t i)
{
    return !c->seen[i] && !c->incomplete && strncmp(c->before[i].path, "/tmp/", 5) != 0;
}

void changes_complete(struct changes *c)
{
    for (size_t i = 0; i < c->before_n; i++)
        if (is_missed(c, i) && changes_find(c, c->before[i].path) == (ssize_t)i)
            (void)changes_add(c, CHANGE_DELETED, c->before[i].path, (ssize_t)i);
    if (c->n > 1)
        qsort(c->v, c->n, sizeof *c->v, by_name);
}

/* ---- one in the place of another ---- */

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

bool change_excludes(const char *path, const char *other)
{
    return is_below(path, other) || is_below(other, path);
}

/* The first one that does not come before the n bytes at path. */
static const struct change *at_or_after(const struct changes *c, const char *path, size_t n)
{
    size_t from = 0, to = c->n;

    while (from < to) {
        size_t mid = from + (to - from) / 2;

        if (strncmp(c->v[mid].path, path, n) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from < c->n ? &c->v[from] : NULL;
}

const struct change *changes_heir(const struct changes *c, const struct change *deleted)
{
    cleanup_free char *below = malloc(strlen(deleted->path) + 2);
    const struct change *found;
    size_t n = strlen(deleted->path);

    if (!below)
        return NULL;
    memcpy(below, deleted->path, n);
    memcpy(below + n, "/", 2);
    found = at_or_after(c, below, n + 1);
    if (found && found->type == CHANGE_CREATED && is_below(found->path, deleted->path))
        return found;
    for (const char *slash = strchr(below + 1, '/'); slash && slash < below + n;
         slash = strchr(slash + 1, '/')) {
        size_t dir = (size_t)(slash - below);

        found = at_or_after(c, below, dir);
        if (found && found->type == CHANGE_CREATED && strlen(found->path) == dir &&
            strncmp(found->path, below, dir) == 0)
            return found;
    }
    return NULL;
}

size_t changes_bytes(const struct changes *c)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct call_file *before = c->v[i].before;

        n += strlen(c->v[i].path) + c->v[i].content.n;
        n += before && !before->unread ? before->content.n : 0;
    }
    return n;
}
