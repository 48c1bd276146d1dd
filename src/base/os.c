/* SPDX-License-Identifier: MIT */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

enum { TUBE_SIZE = 1 << 20 }; /* what the kernel may refuse */

int os_accept(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int os_socket(int family, int type, int protocol)
{
    return socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
}

int os_memory_file(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}

int os_wake_open(int *ret_read, int *ret_write)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return -1;
    *ret_read = *ret_write = fd;
    return 0;
}

void os_wake(int write_fd)
{
    const uint64_t one = 1;

    /* A counter that is full has woken the loop already. */
    (void)!write(write_fd, &one, sizeof one);
}

void os_wake_take(int read_fd)
{
    uint64_t count;

    (void)!read(read_fd, &count, sizeof count);
}

void os_pipe_grow(int fd, int size)
{
    (void)fcntl(fd, F_SETPIPE_SZ, size);
}

int os_tube(int ret[2])
{
    int r = fd_pipe(ret);

    if (r == 0)
        os_pipe_grow(ret[1], TUBE_SIZE);
    return r;
}

/* Without copying. */
ssize_t os_move(int from, int to, size_t most)
{
    return splice(from, NULL, to, NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

/* Likewise: the pages of the pipe are dropped where they are. */
ssize_t os_discard(int fd, int null, size_t most)
{
    return splice(fd, NULL, null, NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
}

void os_patience(int socket, int ms)
{
    (void)setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

/* As coarse as times of files are. */
struct timespec os_file_clock(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now;
}

void os_write_back(int fd)
{
    (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

size_t os_processors(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) < 0 ? 1 : (size_t)CPU_COUNT(&set);
}

void *os_memory(size_t n)
{
    const size_t page = (size_t)2 << 20; /* a large one, or so: only a hint depends on it */
    size_t spare = n < page ? 0 : page;
    char *p = mmap(NULL, n + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    if (spare == 0)
        return p;
    p += (page - (uintptr_t)p % page) % page;
    (void)madvise(p, n, MADV_HUGEPAGE);
    return p;
}

void os_heap_keep(size_t n)
{
#ifdef M_TRIM_THRESHOLD /* musl gives back nothing of what is small */
    (void)mallopt(M_TRIM_THRESHOLD, (int)n);
    (void)mallopt(M_MMAP_THRESHOLD, (int)n / 4); /* which would no longer adapt by itself */
#else
    (void)n;
#endif
}

void os_give_back(char *p, size_t n)
{
    const uintptr_t page = 4096; /* at least; what the kernel does not take stays */
    uintptr_t from = ((uintptr_t)p + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)p + n) / page * page;

    if (from < to)
        (void)madvise((char *)from, to - from, MADV_DONTNEED);
}

int os_beside(const char *name, char *out, size_t n)
{
    ssize_t got = readlink("/proc/self/exe", out, n);
    size_t at, len = strlen(name);

    if (got <= 0)
        return -errno;
    at = (size_t)got;
    while (at > 0 && out[at - 1] != '/')
        at--;
    if (at + len >= n)
        return -ENAMETOOLONG;
    memcpy(out + at, name, len + 1);
    return 0;
}

/* ---- looking ---- */

int os_look_beneath(int dir, const char *path, struct stat *ret, bool *ret_readable)
{
    cleanup_close int fd = fd_open_beneath(dir, path, O_PATH, 0, FD_LINKS_NEVER);

    if (fd < 0)
        return fd;
    if (fstat(fd, ret) < 0)
        return -errno;
    *ret_readable = faccessat(fd, "", R_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
    return 0;
}

bool os_can_be_lent(int dir)
{
    static const unsigned long known[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                          TMPFS_MAGIC, F2FS_SUPER_MAGIC};
    struct statfs fs;

    if (fstatfs(dir, &fs) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if ((unsigned long)fs.f_type == known[i])
            return true;
    return false;
}

ssize_t os_read_start(int fd, char *p, size_t n)
{
    size_t got = 0;

    while (got < n) {
        ssize_t more = pread(fd, p + got, n - got, (off_t)got);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -errno;
        if (more == 0)
            break;
        got += (size_t)more;
    }
    return (ssize_t)got;
}
