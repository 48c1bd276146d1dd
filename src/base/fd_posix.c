/* SPDX-License-Identifier: MIT */
/* Of fd.h, what other systems than Linux do: descriptors are marked right after their birth. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

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

int fd_open_beneath(int root, const char *path, int flags, mode_t mode, enum fd_links links)
{
    (void)links;
    return fd_open_beneath_walk(root, path, flags, mode);
}
