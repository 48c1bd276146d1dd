/* SPDX-License-Identifier: MIT */
/* Of fd.h, what other systems than Linux do: descriptors are marked right after their birth. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { FILES_MAX = 65536 };

static int pair_mark(int pair[2])
{
    if (fcntl(pair[0], F_SETFD, FD_CLOEXEC) < 0 || fcntl(pair[1], F_SETFD, FD_CLOEXEC) < 0) {
        int error = errno;

        fd_close_all(pair, 2);
        return -error;
    }
    return 0;
}

int fd_socketpair(int type, int ret[2])
{
    return socketpair(AF_UNIX, type, 0, ret) < 0 ? -errno : pair_mark(ret);
}

int fd_pipe(int ret[2])
{
    return pipe(ret) < 0 ? -errno : pair_mark(ret);
}

int fd_move(int fd, int number)
{
    return dup2(fd, number) < 0 || fcntl(number, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 0;
}

static int files_max(void)
{
    long most = sysconf(_SC_OPEN_MAX);

    return most > 0 && most < FILES_MAX ? (int)most : FILES_MAX;
}

int fd_close_from(int first)
{
    return fd_close_range(first, files_max());
}

int fd_close_range(int first, int last)
{
    for (int fd = first; fd <= last; fd++)
        (void)close(fd);
    return 0;
}

int fd_cloexec_from(int first)
{
    for (int fd = first; fd < files_max(); fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

/* In a directory where nobody else makes anything: two steps. */
int fd_rename_new(int dir, const char *from, const char *to)
{
    struct stat st;

    if (fstatat(dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(dir, from, dir, to) < 0 ? -errno : 0;
}

int fd_open_beneath(int root, const char *path, int flags, mode_t mode, enum fd_links links)
{
    (void)links;
    return fd_open_beneath_walk(root, path, flags, mode);
}
