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

/* A file without a name cannot replace another: it gets one of its own first. */
static int give_name(struct beside *b)
{
    char self[32];

    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", b->fd);
    for (int i = 0; i < BESIDE_TRIES && !b->named; i++) {
        next_name(b, i);
        b->named = linkat(AT_FDCWD, self, b->dir, b->name, AT_SYMLINK_FOLLOW) == 0;
        if (!b->named && errno != EEXIST)
            break;
    }
    return b->named ? 0 : -errno;
}

int beside_commit(struct beside *b, const char *base)
{
    int r = give_name(b);

    if (r == 0 && renameat(b->dir, b->name, b->dir, base) < 0)
        r = -errno;
    else if (r == 0)
        b->named = false;
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
