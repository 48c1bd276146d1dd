/* SPDX-License-Identifier: MIT */
#include "init/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/os.h"
#include "init/remove.h"

enum { NAME_ROOM = 256, VALUE_MAX = 1 << 20 };

/* ---- making and removing ---- */

static int make_one(int dir, const char *name, uid_t uid, gid_t gid)
{
    if (mkdirat(dir, name, 0700) < 0)
        return -errno;
    return fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int make_named(int dir, const char *names, uid_t uid, gid_t gid)
{
    char one[NAME_ROOM];
    int r = 0;

    while (*names && r == 0) {
        size_t n = strcspn(names, "/");

        if (n == 0 || n >= sizeof one)
            return -EINVAL;
        memcpy(one, names, n);
        one[n] = '\0';
        r = one[0] == '.' ? -EINVAL : make_one(dir, one, uid, gid);
        names += n + (names[n] == '/');
    }
    return r;
}

static int link_kept(int dir, int kept)
{
    char target[4096];
    int r = os_where(kept, target, sizeof target);

    if (r < 0)
        return r;
    return symlinkat(target, dir, "workspace") < 0 ? -errno : 0;
}

int room_make(const char *room, const char *names, int kept, uid_t uid, gid_t gid)
{
    cleanup_close int dir = -1;
    int r;

    if (mkdir(room, 0700) < 0)
        return -errno;
    dir = open(room, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fchown(dir, uid, gid) < 0)
        return -errno;
    r = kept >= 0 ? link_kept(dir, kept) : make_one(dir, "workspace", uid, gid);
    if (r == 0)
        r = make_one(dir, "tmp", uid, gid);
    return r ? r : make_named(dir, names, uid, gid);
}

int room_tree(const char *room, bool all)
{
    cleanup_close int dir = open(room, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int tree;

    if (dir < 0)
        return -errno;
    if (all)
        return take_fd(&dir);
    tree = openat(dir, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return tree < 0 ? -errno : tree;
}

/* What refuses to go (a directory that its owner closed) is left to whoever cleans /tmp. */
void room_remove(const char *room)
{
    cleanup_free char *failed = NULL;

    (void)!remove_all(room, &failed);
}

/* ---- names ---- */

/* Does the path begin with a directory that the room has? "/" is the room itself. */
static bool is_inside(const char *room, const char *path, size_t n)
{
    size_t first = 1 + strcspn(path + 1, "/:");
    char name[ROOM_PATH_MAX + NAME_ROOM + 2];
    struct stat st;

    if (first > n)
        first = n;
    if (n == 1)
        return true;
    if (first < 2 || first > NAME_ROOM)
        return false;
    (void)snprintf(name, sizeof name, "%s%.*s", room, (int)first, path);
    return lstat(name, &st) == 0;
}

static void put_moved(struct buf *out, const char *room, const char *path, size_t n)
{
    if (n > 0 && path[0] == '/' && is_inside(room, path, n))
        (void)buf_puts(out, room);
    (void)buf_put(out, path, n);
}

static char *finish(struct buf *out)
{
    if (out->failed)
        buf_done(out);
    return buf_take(out, NULL);
}

char *room_path(const char *room, char *path)
{
    struct buf out = BUF_INIT(VALUE_MAX);

    put_moved(&out, room, path, strlen(path));
    return finish(&out);
}

/* "-I/workspace" is the only argument with a path in it that plans use. */
static char *map_argument(const char *room, char *arg)
{
    struct buf out = BUF_INIT(VALUE_MAX);
    size_t head = strncmp(arg, "-I/", 3) == 0 ? 2 : 0;

    if (arg[head] != '/' || strchr(arg, '\n'))
        return arg;
    (void)buf_put(&out, arg, head);
    put_moved(&out, room, arg + head, strlen(arg + head));
    return finish(&out);
}

/* "NAME=/a:/b" */
static char *map_variable(const char *room, char *pair)
{
    struct buf out = BUF_INIT(VALUE_MAX);
    char *at = strchr(pair, '=');

    if (!at || at[1] != '/')
        return pair;
    (void)buf_put(&out, pair, (size_t)(at - pair) + 1);
    for (at++;; at++) {
        size_t n = strcspn(at, ":");

        put_moved(&out, room, at, n);
        at += n;
        if (!*at)
            return finish(&out);
        (void)buf_putc(&out, ':');
    }
}

/* One of ours is beside the one that runs here. */
static char *map_program(const char *room, char *path)
{
    static const char inside[] = "/opt/sandbox-executor/bin/";
    struct buf out = BUF_INIT(VALUE_MAX);
    char own[4096];

    if (strncmp(path, inside, sizeof inside - 1) != 0)
        return map_argument(room, path);
    if (os_beside(path + sizeof inside - 1, own, sizeof own) < 0)
        return NULL;
    (void)buf_puts(&out, own);
    return finish(&out);
}

int room_map(const char *room, struct job *j)
{
    j->cwd = room_path(room, (char *)(uintptr_t)j->cwd);
    if (!j->cwd)
        return -ENOMEM;
    for (char **p = j->argv; *p; p++) {
        *p = p == j->argv ? map_program(room, *p) : map_argument(room, *p);
        if (!*p)
            return -ENOMEM;
    }
    for (char **p = j->envp; *p; p++) {
        *p = map_variable(room, *p);
        if (!*p)
            return -ENOMEM;
    }
    return 0;
}
