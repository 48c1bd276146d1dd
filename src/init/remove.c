/* SPDX-License-Identifier: MIT */
#include "init/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/entries.h"

enum { FIRST_ROOM = 512 };

/* A directory that was entered: which one it was entered from, and where its name begins. */
struct level {
    dev_t dev;
    ino_t ino;
    size_t name_at;
};

struct removal {
    int dir;    /* owned: where we are */
    bool opens; /* directories without permissions get them */
    char *path; /* owned: how we came here */
    size_t path_n, room;
    struct level *level; /* owned */
    size_t depth, levels_room;
};

static int path_push(struct removal *r, const char *name)
{
    size_t n = strlen(name), need = r->path_n + n + 2;

    if (need > r->room) {
        size_t room = need * 2 + FIRST_ROOM;
        char *p = realloc(r->path, room);

        if (!p)
            return -ENOMEM;
        r->path = p;
        r->room = room;
    }
    if (r->path_n > 0 && r->path[r->path_n - 1] != '/')
        r->path[r->path_n++] = '/';
    memcpy(r->path + r->path_n, name, n + 1);
    r->path_n += n;
    return 0;
}

static void path_cut(struct removal *r, size_t n)
{
    r->path_n = n;
    r->path[n] = '\0';
}

/* Into the directory `name`; never through a link. */
static int enter(struct removal *r, const char *name)
{
    cleanup_close int sub = -1;
    struct stat st;
    size_t before = r->path_n;
    int e = path_push(r, name);

    if (e < 0)
        return e;
    if (r->depth == r->levels_room) {
        size_t room = r->levels_room ? r->levels_room * 2 : FIRST_ROOM;
        struct level *more = realloc(r->level, room * sizeof *more);

        if (!more)
            return -ENOMEM;
        r->level = more;
        r->levels_room = room;
    }
    if (r->opens) /* `name` is a directory with entries: nobody else works on this tree */
        (void)!fchmodat(r->dir, name, 0700, 0);
    sub = openat(r->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (sub < 0 || fstat(r->dir, &st) < 0)
        return -errno;
    r->level[r->depth++] = (struct level){st.st_dev, st.st_ino, before};
    (void)close(r->dir);
    r->dir = take_fd(&sub);
    return 0;
}

/* Back to where we came from, and the directory we leave is removed. */
static int leave(struct removal *r)
{
    const struct level *l = &r->level[r->depth - 1];
    cleanup_close int up = openat(r->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *name = r->path + l->name_at;
    struct stat st;

    if (up < 0 || fstat(up, &st) < 0)
        return -errno;
    if (st.st_dev != l->dev || st.st_ino != l->ino)
        return -ESTALE;
    if (*name == '/')
        name++;
    if (unlinkat(up, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -errno;
    path_cut(r, l->name_at);
    r->depth--;
    (void)close(r->dir);
    r->dir = take_fd(&up);
    return 0;
}

/* One entry of where we are: 0 when it is gone, 1 when we went into it, or -errno. */
static int drop(struct removal *r, const char *name)
{
    size_t before = r->path_n;
    int first, e;

    if (unlinkat(r->dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    first = errno;
    if (first == EISDIR || first == EPERM || first == EACCES) {
        if (unlinkat(r->dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY) {
            e = enter(r, name);
            return e < 0 ? e : 1;
        }
        if (errno != ENOTDIR)
            first = errno;
    }
    e = path_push(r, name);
    if (e < 0)
        path_cut(r, before);
    return -first;
}

/* Removes entries until there are none here, or we are in another directory. 1: went in, 0: this
 * one is empty. */
static int empty(struct removal *r)
{
    struct entries all = {.fd = r->dir};
    int error = lseek(r->dir, 0, SEEK_SET) < 0 ? errno : 0;

    for (const char *name; error == 0 && (name = entries_next(&all, &error));) {
        int e = drop(r, name);

        if (e != 0)
            return e;
    }
    return -error;
}

static int walk(struct removal *r)
{
    int e;

    do {
        e = empty(r);
        if (e == 0 && r->depth > 0) {
            e = leave(r);
            if (e == 0)
                e = r->depth > 0;
        }
    } while (e > 0);
    return e;
}

/* Splits the path: the parent is opened the ordinary way, links and all. */
static int open_parent(struct removal *r, const char *path, char **ret_base)
{
    size_t n = strlen(path), base;
    char *copy;

    while (n > 1 && path[n - 1] == '/')
        n--;
    base = n;
    while (base > 0 && path[base - 1] != '/')
        base--;
    copy = strndup(path, n);
    if (!copy)
        return -ENOMEM;
    *ret_base = strdup(copy + base);
    copy[base] = '\0';
    r->path = copy;
    r->path_n = base;
    r->room = base + 1;
    r->dir = open(base ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return !*ret_base ? -ENOMEM : r->dir < 0 ? -errno : 0;
}

int remove_all(const char *path, char **ret_failed)
{
    struct removal r = {.dir = -1};
    cleanup_free char *base = NULL;
    int e;

    if (!*path || unlink(path) == 0 || errno == ENOENT || rmdir(path) == 0 || errno == ENOENT)
        return 0;
    e = open_parent(&r, path, &base);
    if (e == 0)
        e = drop(&r, *base ? base : ".");
    if (e > 0)
        e = walk(&r);
    closep(&r.dir);
    free(r.level);
    *ret_failed = r.path;
    return e == -ENOENT ? 0 : e;
}

int remove_inside(int dir)
{
    struct removal r = {.opens = true};
    int e;

    (void)!fchmod(dir, 0700);
    r.dir = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    e = r.dir < 0 ? -errno : empty(&r);
    while (e > 0) { /* in a tree below; then the next one */
        e = walk(&r);
        if (e == 0)
            e = empty(&r);
    }
    closep(&r.dir);
    free(r.level);
    free(r.path);
    return e;
}
