/* SPDX-License-Identifier: MIT */
#include "init/room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/remove.h"

enum { NAME_ROOM = 256 };

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

/* The path of a directory. -errno */
static int path_of(int dir, char *out, size_t n)
{
    char name[32];
    ssize_t got;

    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", dir);
    got = readlink(name, out, n - 1);
    if (got <= 0 || (size_t)got == n - 1)
        return got < 0 ? -errno : -ENAMETOOLONG;
    out[got] = '\0';
    return 0;
}

static int link_kept(int dir, int kept)
{
    char target[4096];
    int r = path_of(kept, target, sizeof target);

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

/* What cannot be removed (a directory that its owner closed) is left to the host's cleaning of
 * /tmp. */
void room_remove(const char *room)
{
    cleanup_free char *failed = NULL;

    (void)!remove_all(room, &failed);
}
