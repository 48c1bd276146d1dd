/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "base/fd.h"

enum { MOVE_MAX = 16 * 1024 };

/* Descriptors are marked right after their birth. -1: errno, and it is closed. */
static int born(int fd)
{
    int error;

    if (fd < 0 || (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fd_nonblock(fd, true) == 0))
        return fd;
    error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

int os_accept(int listener)
{
    return born(accept(listener, NULL, NULL));
}

int os_socket(int family, int type, int protocol)
{
    return born(socket(family, type, protocol));
}

int os_memory_file(const char *name)
{
    char path[] = "/tmp/sandbox-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);

    (void)name;
    if (fd >= 0)
        (void)unlink(path);
    return fd;
}

int os_wake_open(int *ret_read, int *ret_write)
{
    int pair[2], r = fd_pipe(pair);

    if (r == 0)
        r = fd_nonblock(pair[0], true) < 0 || fd_nonblock(pair[1], true) < 0 ? -EIO : 0;
    if (r < 0) {
        errno = -r;
        return -1;
    }
    *ret_read = pair[0];
    *ret_write = pair[1];
    return 0;
}

void os_wake(int write_fd)
{
    (void)!write(write_fd, "w", 1); /* a pipe that is full has woken the loop already */
}

void os_wake_take(int read_fd)
{
    char many[64];

    while (read(read_fd, many, sizeof many) == (ssize_t)sizeof many) {
    }
}

void os_pipe_grow(int fd, int size)
{
    (void)fd, (void)size; /* it has what it has */
}

ssize_t os_sendfile(int to, int from, off_t *at, size_t n)
{
    (void)to, (void)from, (void)at, (void)n;
    errno = ENOSYS; /* each system has another one of that name */
    return -1;
}

/* What is in it can be looked at before it is taken: nothing is lost if its target has no room. */
int os_tube(int ret[2])
{
    int r = fd_socketpair(SOCK_STREAM, ret);

    return r < 0 ? r : fd_nonblock(ret[0], true) < 0 || fd_nonblock(ret[1], true) < 0 ? -EIO : 0;
}

ssize_t os_move(int from, int to, size_t most)
{
    char part[MOVE_MAX];
    ssize_t n = recv(from, part, most < sizeof part ? most : sizeof part, MSG_PEEK | MSG_DONTWAIT);

    if (n <= 0)
        return n;
    n = send(to, part, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n <= 0 ? n : recv(from, part, (size_t)n, MSG_DONTWAIT);
}

ssize_t os_discard(int fd, int null, size_t most)
{
    char part[MOVE_MAX];

    (void)null;
    return read(fd, part, most < sizeof part ? most : sizeof part);
}

void os_patience(int socket, int ms)
{
    (void)socket, (void)ms; /* keep-alive probes alone find out, a little later */
}

struct timespec os_mtime(const struct stat *st)
{
#ifdef __APPLE__
    return st->st_mtimespec;
#else
    return (struct timespec){.tv_sec = st->st_mtime};
#endif
}

struct timespec os_ctime(const struct stat *st)
{
#ifdef __APPLE__
    return st->st_ctimespec;
#else
    return (struct timespec){.tv_sec = st->st_ctime};
#endif
}

struct timespec os_file_clock(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

void os_write_back(int fd)
{
    (void)fd; /* only a hint */
}

size_t os_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (size_t)n : 1;
}

void *os_memory(size_t n)
{
    return calloc(1, n);
}

void os_heap_keep(size_t n)
{
    (void)n;
}

void os_wipe(void *p, size_t n)
{
    volatile unsigned char *at = p;

    while (n-- > 0)
        *at++ = 0;
}

ssize_t os_program(char *out, size_t n)
{
#ifdef __APPLE__
    uint32_t room = (uint32_t)n;
    char given[PATH_MAX];

    if (_NSGetExecutablePath(out, &room) == 0 && realpath(out, given) && strlen(given) < n)
        return (ssize_t)strlen(memcpy(out, given, strlen(given) + 1));
#else
    ssize_t found = readlink("/proc/self/exe", out, n); /* Linux and NetBSD */

    if (found > 0)
        return found;
#endif
    errno = ENOENT;
    return -1;
}

/* By going there and back: no system call tells. */
int os_where(int dir, char *out, size_t n)
{
    cleanup_close int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;

    if (back < 0 || fchdir(dir) < 0)
        return -errno;
    if (!getcwd(out, n))
        r = -errno;
    return fchdir(back) < 0 ? -errno : r;
}

int os_become(uid_t uid, gid_t gid)
{
    if (setgroups(1, &gid) < 0 || setgid(gid) < 0 || setuid(uid) < 0)
        return -1;
    return 0;
}

int os_give_up(void)
{
    return 0; /* there is nothing of the kind */
}

/* ---- looking ---- */

int os_look_beneath(int dir, const char *path, struct stat *ret, bool *ret_readable)
{
    (void)dir, (void)path, (void)ret, (void)ret_readable;
    return -ENOSYS;
}

bool os_can_be_lent(int dir)
{
    (void)dir;
    return false;
}
