/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPEN_RETRIES_MAX = 32 };

void fd_close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
        fds[i] = -1;
    }
}

/* ---- birth and flags ---- */

int fd_dup(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    return copy < 0 ? -errno : copy;
}

int fd_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int fd_nonblock_new(int fd)
{
    return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* ---- whole reads and writes ---- */

int fd_write_all(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n > 0) {
        ssize_t done = write(fd, at, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

ssize_t fd_read_full(int fd, void *p, size_t n)
{
    size_t have = 0;

    while (have < n) {
        ssize_t done = read(fd, (char *)p + have, n - have);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        if (done == 0)
            break;
        have += (size_t)done;
    }
    return (ssize_t)have;
}

/* ---- beneath a directory ---- */

enum { COMPONENT_MAX = 255 };

/* The next component of *path, which moves on: its length, 0 at the end, -errno. "." and repeated
 * slashes are skipped. */
static int component(const char **path, char out[COMPONENT_MAX + 1])
{
    const char *p = *path;
    size_t n;

    for (;;) {
        p += strspn(p, "/");
        n = strcspn(p, "/");
        if (n != 1 || *p != '.')
            break;
        p += n;
    }
    *path = p + n;
    if (n > COMPONENT_MAX)
        return -ENAMETOOLONG;
    memcpy(out, p, n);
    out[n] = '\0';
    return strcmp(out, "..") == 0 ? -EXDEV : (int)n;
}

/* openat() with the flags of the last component, links refused. O_PATH would open the link itself
 * instead of refusing it, so that case is looked at afterwards. */
static int open_last(int dir, const char *name, int flags, mode_t mode)
{
    cleanup_close int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode);
    struct stat st;

    if (fd < 0)
        return -errno;
    if (O_PATH && (flags & O_PATH) && !(flags & O_NOFOLLOW)) {
        if (fstat(fd, &st) < 0)
            return -errno;
        if (S_ISLNK(st.st_mode))
            return -ELOOP;
    }
    return take_fd(&fd);
}

/* A directory on the way. Opening a link with O_DIRECTORY says ENOTDIR; the caller should hear why
 * it was refused. */
static int open_step(int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    if (errno == ENOTDIR && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(st.st_mode))
        return -ELOOP;
    return -errno;
}

/* "dir/" and "dir/." name directories only. */
static bool names_directory(const char *path)
{
    size_t n = strlen(path);

    return path[n - 1] == '/' || (n > 1 && path[n - 1] == '.' && path[n - 2] == '/');
}

int fd_open_beneath_walk(int root, const char *path, int flags, mode_t mode)
{
    cleanup_close int held = -1; /* the directory reached so far; -1: root itself */
    char name[COMPONENT_MAX + 1], next[COMPONENT_MAX + 1];
    int n;

    if (*path == '\0')
        return -ENOENT;
    if (*path == '/')
        return -EXDEV;
    if (names_directory(path))
        flags |= O_DIRECTORY;
    n = component(&path, name);
    if (n < 0)
        return n;
    if (n == 0)
        return open_last(root, ".", flags, mode);
    while ((n = component(&path, next)) > 0) {
        int fd = open_step(held >= 0 ? held : root, name);

        if (fd < 0)
            return fd;
        closep(&held);
        held = fd;
        memcpy(name, next, (size_t)n + 1);
    }
    return n < 0 ? n : open_last(held >= 0 ? held : root, name, flags, mode);
}

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
