/* SPDX-License-Identifier: MIT */
/* Of fd.h, what Linux does better than others. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

enum { OPEN_RETRIES_MAX = 32 };

int fd_socketpair(int type, int ret[2])
{
    return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ret) < 0 ? -errno : 0;
}

int fd_pipe(int ret[2])
{
    return pipe2(ret, O_CLOEXEC) < 0 ? -errno : 0;
}

int fd_move(int fd, int number)
{
    return dup3(fd, number, O_CLOEXEC) < 0 ? -errno : 0;
}

/* musl, which sandbox-init is linked with, has no function for it. */
int fd_close_from(int first)
{
    return fd_close_range(first, INT_MAX);
}

int fd_close_range(int first, int last)
{
    return syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0) < 0 ? -errno : 0;
}

int fd_cloexec_from(int first)
{
    static const unsigned cloexec = 4; /* CLOSE_RANGE_CLOEXEC */

    return syscall(SYS_close_range, (unsigned)first, ~0u, cloexec) < 0 ? -errno : 0;
}

int fd_rename_new(int dir, const char *from, const char *to)
{
    static const unsigned no_replace = 1; /* RENAME_NOREPLACE */

    return syscall(SYS_renameat2, dir, from, dir, to, no_replace) < 0 ? -errno : 0;
}

int fd_open_beneath(int root, const char *path, int flags, mode_t mode, enum fd_links links)
{
    /* openat2 refuses flags that mean nothing together with O_PATH. */
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC | (flags & O_PATH ? 0 : O_NOCTTY)),
        .mode = (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) ? mode & 07777 : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
                   (links == FD_LINKS_NEVER ? RESOLVE_NO_SYMLINKS : 0),
    };

    /* The kernel answers EAGAIN when a rename on the way made it unsure; somebody inside may keep
     * renaming, so the patience is limited. */
    for (int i = 0; i < OPEN_RETRIES_MAX; i++) {
        long fd = syscall(SYS_openat2, root, path, &how, sizeof how);

        if (fd >= 0)
            return (int)fd;
        if (errno == ENOSYS)
            return fd_open_beneath_walk(root, path, flags, mode);
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return -EAGAIN;
}
