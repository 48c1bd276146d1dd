/* SPDX-License-Identifier: MIT */
#include "function/known.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct known *k, size_t i)
{
    if (!k->learnt[i])
        return;
    k->bytes -= k->files[i].content.n;
    free((void *)(uintptr_t)k->files[i].path);
    free((void *)(uintptr_t)k->files[i].content.p);
}

void known_done(struct known *k)
{
    for (size_t i = 0; i < k->n; i++)
        forget(k, i);
    free(k->files);
    free(k->stamps);
    free(k->learnt);
    *k = (struct known){0};
}

static int grow(struct known *k, size_t n)
{
    size_t cap = k->cap ? k->cap : 16;
    struct call_file *files;
    struct file_stamp *stamps;
    bool *learnt;

    while (cap < n)
        cap *= 2;
    if (cap == k->cap)
        return 0;
    files = reallocarray(k->files, cap, sizeof *files);
    k->files = files ? files : k->files;
    stamps = reallocarray(k->stamps, cap, sizeof *stamps);
    k->stamps = stamps ? stamps : k->stamps;
    learnt = reallocarray(k->learnt, cap, sizeof *learnt);
    k->learnt = learnt ? learnt : k->learnt;
    if (!files || !stamps || !learnt)
        return -1;
    k->cap = cap;
    return 0;
}

int known_begin(struct known *k, const struct call_file *given, size_t n)
{
    known_done(k);
    if (grow(k, n) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        k->files[i] = given[i];
        k->stamps[i] = (struct file_stamp){0};
        k->learnt[i] = false;
    }
    k->n = n;
    return 0;
}

static const char *copy(const char *p, size_t n)
{
    char *to = malloc(n + 1);

    if (!to)
        return NULL;
    if (n > 0)
        memcpy(to, p, n);
    to[n] = '\0';
    return to;
}

/* Content that there is no room for is not kept. */
static int learn(struct known *k, const char *path, struct bytes content, bool is_known,
                 struct call_file *ret)
{
    struct call_file f = {.unread = !is_known || k->bytes + content.n > KNOWN_CONTENT_MAX};

    f.path = copy(path, strlen(path));
    if (!f.unread) {
        f.content.p = copy(content.p, content.n);
        f.content.n = content.n;
    }
    if (!f.path || (!f.unread && !f.content.p)) {
        free((void *)(uintptr_t)f.path);
        free((void *)(uintptr_t)f.content.p);
        return -1;
    }
    k->bytes += f.content.n;
    *ret = f;
    return 0;
}

int known_add(struct known *k, const char *path, struct bytes content)
{
    if (grow(k, k->n + 1) < 0 || learn(k, path, content, true, &k->files[k->n]) < 0)
        return -1;
    k->stamps[k->n] = (struct file_stamp){0};
    k->learnt[k->n++] = true;
    return 0;
}

/* ---- what was there before ---- */

void known_old_free(struct call_file *old, size_t n)
{
    for (size_t i = 0; old && i < n; i++)
        free((void *)(uintptr_t)old[i].content.p);
    free(old);
}

/* The changes must not point into what is about to change. */
static int old_take(struct changes *all, struct call_file **ret)
{
    struct call_file *old = calloc(all->n + 1, sizeof *old);

    if (!old)
        return -1;
    for (size_t i = 0; i < all->n; i++) {
        const struct call_file *was = all->v[i].before;

        old[i] = (struct call_file){.path = all->v[i].path, .unread = true};
        if (!was || was->unread)
            continue;
        old[i].content.p = copy(was->content.p, was->content.n);
        old[i].content.n = was->content.n;
        old[i].unread = !old[i].content.p;
    }
    *ret = old;
    return 0;
}

/* ---- now ---- */

/* It was changed, and this is what it is now. */
static void renew(struct known *k, size_t i, const struct change *one)
{
    struct call_file now;

    if (learn(k, one->path, (struct bytes){one->content.p, one->content.n}, one->has_content,
              &now) < 0) {
        k->stamps[i] = (struct file_stamp){0}; /* it will be told once more */
        return;
    }
    forget(k, i);
    k->files[i] = now;
    k->stamps[i] = one->stamp;
    k->learnt[i] = true;
}

static void settle(struct known *k, struct changes *all)
{
    for (size_t i = 0; i < all->before_n; i++)
        if (all->seen[i])
            k->stamps[i] = all->now[i];
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].type == CHANGE_MODIFIED && !all->v[i].attempted && all->v[i].before)
            renew(k, (size_t)(all->v[i].before - k->files), &all->v[i]);
}

static void drop_deleted(struct known *k, const struct changes *all)
{
    size_t n = 0;

    for (size_t i = 0; i < k->n; i++) {
        if (i < all->before_n && !all->seen[i]) {
            forget(k, i);
            continue;
        }
        k->files[n] = k->files[i];
        k->stamps[n] = k->stamps[i];
        k->learnt[n++] = k->learnt[i];
    }
    k->n = n;
}

static void add_created(struct known *k, const struct changes *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct change *one = &all->v[i];

        if (one->type != CHANGE_CREATED || one->attempted || grow(k, k->n + 1) < 0 ||
            learn(k, one->path, (struct bytes){one->content.p, one->content.n}, one->has_content,
                  &k->files[k->n]) < 0)
            continue;
        k->stamps[k->n] = one->stamp;
        k->learnt[k->n++] = true;
    }
}

int known_update(struct known *k, struct changes *all, struct call_file **ret_old)
{
    struct call_file *old;

    if (old_take(all, &old) < 0)
        return -1;
    settle(k, all);
    drop_deleted(k, all);
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].before)
            all->v[i].before = &old[i];
    all->before = NULL;
    all->before_n = 0;
    add_created(k, all);
    *ret_old = old;
    return 0;
}
