/* SPDX-License-Identifier: MIT */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* Systems without the atomic flags mark descriptors right after birth instead. */
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef O_PATH
#define O_PATH 0
#endif

void fd_close_all(int *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
        fds[i] = -1;
    }
}

/* ---- messages ---- */

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
};

int fd_send(int sock, const void *msg, size_t n, const int *fds, size_t fds_n)
{
    union control control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)msg, .iov_len = n};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;

    if (n == 0 || fds_n > FD_PASS_MAX)
        return -EINVAL;
    if (fds_n > 0) {
        struct cmsghdr *c = &control.align;

        h.msg_control = control.bytes;
        h.msg_controllen = CMSG_SPACE(sizeof(int) * fds_n);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fds_n);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fds_n);
    }
    do
        sent = sendmsg(sock, &h, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return -errno;
    return (size_t)sent == n ? 0 : -EPROTO; /* a stream took a part: the caller's mistake */
}

/* Takes every descriptor out of the control data, also those nobody asked for: what is not taken
 * here would stay open for ever. */
static size_t collect(struct msghdr *h, int got[FD_PASS_MAX])
{
    size_t n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t bytes = c->cmsg_len - CMSG_LEN(0);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= bytes && n < FD_PASS_MAX; at += sizeof(int)) {
            memcpy(&got[n], CMSG_DATA(c) + at, sizeof(int));
            if (!MSG_CMSG_CLOEXEC)
                (void)fcntl(got[n], F_SETFD, FD_CLOEXEC);
            n++;
        }
    }
    return n;
}

ssize_t fd_recv(int sock, void *msg, size_t max, int *fds, size_t *inout_fds_n)
{
    union control control;
    struct iovec iov = {.iov_base = msg, .iov_len = max};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    int got[FD_PASS_MAX];
    size_t room = inout_fds_n ? *inout_fds_n : 0;
    size_t got_n;
    ssize_t n;

    if (inout_fds_n)
        *inout_fds_n = 0;
    do
        n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    got_n = collect(&h, got);
    if ((h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || got_n > room || (n == 0 && got_n > 0)) {
        fd_close_all(got, got_n);
        return -EPROTO;
    }
    if (got_n > 0) {
        memcpy(fds, got, sizeof(int) * got_n);
        *inout_fds_n = got_n;
    }
    return n;
}

int fd_recv_exact(int sock, void *msg, size_t n, int *fds, size_t fds_n)
{
    size_t got_n = fds_n;
    ssize_t got = fd_recv(sock, msg, n, fds, &got_n);

    if (got <= 0)
        return (int)got;
    if ((size_t)got == n && got_n == fds_n)
        return 1;
    fd_close_all(fds, got_n);
    return -EPROTO;
}

/* ---- birth and flags ---- */

int fd_dup(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    return copy < 0 ? -errno : copy;
}

int fd_inherit(int fd)
{
    int flags = fcntl(fd, F_GETFD);

    if (flags < 0 || fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC) < 0)
        return -errno;
    return 0;
}

int fd_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -errno;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
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
