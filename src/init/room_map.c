/* SPDX-License-Identifier: MIT */
#include "init/room_map.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/os.h"
#include "init/room.h"

enum { NAME_ROOM = 256, VALUE_MAX = 1 << 20 };

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
