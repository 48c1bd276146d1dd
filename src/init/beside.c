/* SPDX-License-Identifier: MIT */
#include "init/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"

enum { BESIDE_TRIES = 16 }; /* names of others that may be in the way */

static void next_name(struct beside *b, int i)
{
    (void)snprintf(b->name, sizeof b->name, ".sandbox-upload-%ld-%d", (long)getpid(), i);
}

static int open_named(struct beside *b, mode_t mode)
{
    for (int i = 0; i < BESIDE_TRIES; i++) {
        next_name(b, i);
        b->fd = openat(b->dir, b->name,
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, mode);
        if (b->fd >= 0 || errno != EEXIST)
            break;
    }
    b->named = b->fd >= 0;
    return b->fd >= 0 ? 0 : -errno;
}

int beside_open(struct beside *b, int dir, mode_t mode)
{
    *b = (struct beside){.dir = dir};
    b->fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    return b->fd >= 0 ? 0 : open_named(b, mode);
}

/* 0 or -errno. */
static int link_as(const struct beside *b, const char *name)
{
    char self[32];

    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", b->fd);
    return linkat(AT_FDCWD, self, b->dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* A file without a name cannot replace another: it gets one of its own first. */
static int replace(struct beside *b, const char *base)
{
    int r = b->named ? 0 : -EEXIST;

    for (int i = 0; i < BESIDE_TRIES && r == -EEXIST; i++) {
        next_name(b, i);
        r = link_as(b, b->name);
        b->named = r == 0;
    }
    if (r < 0)
        return r;
    if (renameat(b->dir, b->name, b->dir, base) < 0)
        return -errno;
    b->named = false;
    return 0;
}

int beside_commit(struct beside *b, const char *base)
{
    int r = b->named ? -EEXIST : link_as(b, base);

    if (r == -EEXIST)
        r = replace(b, base);
    beside_drop(b);
    return r;
}

void beside_drop(struct beside *b)
{
    if (b->named)
        (void)unlinkat(b->dir, b->name, 0);
    b->named = false;
    closep(&b->fd);
}
