/* SPDX-License-Identifier: MIT */
#include "zygote/renew.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fd.h"

static const unsigned long HUGE_PAGE = 2ul << 20;

static void filep(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

/* ---- noting ---- */

static int note_watched(struct renew_fd *d, const char *line)
{
    unsigned long long data;
    unsigned events;
    int fd;

    if (sscanf(line, "tfd: %d events: %x data: %llx", &fd, &events, &data) != 3)
        return 0;
    if (d->watched_n == RENEW_WATCHED_MAX)
        return -E2BIG;
    d->watched[d->watched_n].fd = fd;
    d->watched[d->watched_n].event.events = events;
    d->watched[d->watched_n++].event.data.u64 = data;
    return 0;
}

/* What the kernel tells about epoll sets and event counters. */
static int note_info(struct renew_fd *d)
{
    cleanup_with(filep) FILE *f = NULL;
    char path[64], line[256];
    unsigned long long count;
    int r = 0;

    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", d->fd);
    f = fopen(path, "re");
    if (!f)
        return -errno;
    while (fgets(line, sizeof line, f) && r == 0) {
        if (sscanf(line, "eventfd-count: %llx", &count) == 1)
            d->count = count;
        r = note_watched(d, line);
    }
    return r;
}

static int note_kind(struct renew_fd *d, const char *link)
{
    if (strcmp(link, "anon_inode:[eventpoll]") == 0) {
        d->kind = RENEW_EPOLL;
        return note_info(d);
    }
    if (strcmp(link, "anon_inode:[eventfd]") == 0) {
        d->kind = RENEW_EVENT;
        return note_info(d);
    }
    if (strncmp(link, "pipe:[", 6) == 0) {
        d->kind = (d->flags & O_ACCMODE) == O_WRONLY ? RENEW_PIPE_END : RENEW_PIPE;
        d->id = strtoull(link + 6, NULL, 10);
        return 0;
    }
    d->kind = RENEW_NULL;
    return strcmp(link, "/dev/null") == 0 ? 0 : -ENOTSUP;
}

static int note_one(struct renew *r, int fd, struct err *e)
{
    struct renew_fd *d = &r->fds[r->n];
    char path[64], link[256];
    ssize_t n;
    int failed;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    n = readlink(path, link, sizeof link - 1);
    if (n < 0)
        return err_sys(e, -errno, "descriptor %d", fd);
    link[n] = '\0';
    if (r->n == RENEW_FDS_MAX)
        return err_set(e, ERR_HOST, "more than %d descriptors", RENEW_FDS_MAX);
    *d = (struct renew_fd){.fd = fd, .flags = fcntl(fd, F_GETFL), .other = -1};
    failed = note_kind(d, link);
    if (failed < 0)
        return err_sys(e, failed, "descriptor %d, which is %.64s", fd, link);
    r->n++;
    return 0;
}

static int note_fds(struct renew *r, int from, struct err *e)
{
    DIR *d = opendir("/proc/self/fd");
    int failed = 0;

    if (!d)
        return err_sys(e, -errno, "list descriptors");
    for (struct dirent *at; failed == 0 && (at = readdir(d));) {
        int fd = at->d_name[0] == '.' ? -1 : (int)strtol(at->d_name, NULL, 10);

        if (fd >= from && fd != dirfd(d))
            failed = note_one(r, fd, e);
    }
    (void)closedir(d);
    return failed;
}

/* Both ends must be here. What waits inside is read and written back. */
static int note_pipe(struct renew *r, struct renew_fd *d)
{
    int waiting = 0;

    for (size_t i = 0; i < r->n; i++)
        if (r->fds[i].kind == RENEW_PIPE_END && r->fds[i].id == d->id)
            d->other = r->fds[i].fd;
    if (d->other < 0 || ioctl(d->fd, FIONREAD, &waiting) < 0)
        return -EPIPE;
    if (waiting > RENEW_PIPE_MAX)
        return -E2BIG;
    d->count = (uint64_t)waiting;
    if (waiting == 0)
        return 0;
    return read(d->fd, d->bytes, (size_t)waiting) == waiting &&
                   write(d->other, d->bytes, (size_t)waiting) == waiting
               ? 0
               : -EIO;
}

int renew_note(struct renew *r, int from, struct err *e)
{
    *r = (struct renew){0};
    if (note_fds(r, from, e) < 0)
        return -1;
    for (size_t i = 0; i < r->n; i++) {
        int failed = r->fds[i].kind == RENEW_PIPE ? note_pipe(r, &r->fds[i]) : 0;

        if (failed < 0)
            return err_sys(e, failed, "pipe %d", r->fds[i].fd);
    }
    for (int sig = 1; sig <= RENEW_SIGNALS; sig++)
        (void)sigaction(sig, NULL, &r->actions[sig - 1]); /* fails for two of the C library's own */
    (void)prctl(PR_GET_NAME, r->name);
    return 0;
}

/* ---- making ---- */

/* Moves a new descriptor to the number it must have. */
static int move(int made, int to)
{
    int r = made < 0 ? -errno : 0;

    if (r < 0 || made == to)
        return r;
    r = dup3(made, to, O_CLOEXEC) < 0 ? -errno : 0;
    (void)close(made);
    return r;
}

static int make_pipe(const struct renew_fd *d)
{
    int p[2], far, r;

    if (pipe2(p, O_CLOEXEC | (d->flags & O_NONBLOCK)) < 0)
        return -errno;
    far = fcntl(p[1], F_DUPFD_CLOEXEC, d->fd + 1); /* it may sit where the first must go */
    (void)close(p[1]);
    r = move(p[0], d->fd);
    if (r == 0)
        r = move(far, d->other);
    return r == 0 && d->count > 0 ? fd_write_all(d->other, d->bytes, d->count) : r;
}

static int make(const struct renew_fd *d)
{
    switch (d->kind) {
    case RENEW_EPOLL:
        return move(epoll_create1(EPOLL_CLOEXEC), d->fd);
    case RENEW_EVENT:
        return move(eventfd((unsigned)d->count, EFD_CLOEXEC | (d->flags & O_NONBLOCK)), d->fd);
    case RENEW_PIPE:
        return make_pipe(d);
    case RENEW_NULL:
        return move(open("/dev/null", (d->flags & O_ACCMODE) | O_CLOEXEC), d->fd);
    case RENEW_PIPE_END: /* came with its other end */
        break;
    }
    return 0;
}

static int watch(const struct renew_fd *d)
{
    for (size_t i = 0; i < d->watched_n; i++) {
        struct epoll_event event = d->watched[i].event;

        if (epoll_ctl(d->fd, EPOLL_CTL_ADD, d->watched[i].fd, &event) < 0)
            return -errno;
    }
    return 0;
}

int renew_make(const struct renew *r)
{
    int failed = 0;

    for (size_t i = 0; i < r->n && failed == 0; i++)
        failed = make(&r->fds[i]);
    for (size_t i = 0; i < r->n && failed == 0; i++)
        failed = watch(&r->fds[i]);
    for (int sig = 1; sig <= RENEW_SIGNALS; sig++)
        (void)sigaction(sig, &r->actions[sig - 1], NULL);
    (void)prctl(PR_SET_NAME, r->name);
    return failed;
}

/* ---- memory ---- */

/* V8 excludes its heap from forks, because most of them are followed by exec. */
int renew_memory(struct err *e)
{
    cleanup_with(filep) FILE *f = fopen("/proc/self/smaps", "re");
    unsigned long from = 0, to = 0, a, b;
    char line[512], c;

    if (!f)
        return err_sys(e, -errno, "/proc/self/smaps");
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx %c", &a, &b, &c) == 3) {
            from = a;
            to = b;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dc") &&
                   madvise((void *)from, to - from, MADV_DOFORK) < 0) {
            return err_sys(e, -errno, "let memory at %lx be copied", from);
        }
    }
    return 0;
}

/* ---- code ---- */

struct code {
    char *from, *to; /* of whole huge pages */
};

static char *round_up(unsigned long at)
{
    return (char *)((at + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
}

/* The largest executable mapping of our program. */
static struct code find_code(void)
{
    cleanup_with(filep) FILE *f = fopen("/proc/self/maps", "re");
    struct code best = {0};
    char line[512], self[256];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    unsigned long a, b;
    char mode[8];

    if (!f || n <= 0)
        return best;
    self[n] = '\0';
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %7s", &a, &b, mode) == 3 && strcmp(mode, "r-xp") == 0 &&
            strstr(line, self)) {
            struct code c = {round_up(a), (char *)(b & ~(HUGE_PAGE - 1))};

            if (c.to > c.from && c.to - c.from > best.to - best.from)
                best = c;
        }
    return best;
}

/* How many bytes of the mapping at `from` are on huge pages? */
static size_t huge_bytes(const char *from)
{
    cleanup_with(filep) FILE *f = fopen("/proc/self/smaps", "re");
    char line[512], mode[8];
    unsigned long a, b, kb;
    bool here = false;

    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%lx-%lx %7s", &a, &b, mode) == 3)
            here = (const char *)a <= from && from < (const char *)b;
        else if (here && sscanf(line, "AnonHugePages: %lu", &kb) == 1)
            return (size_t)kb << 10;
    }
    return 0;
}

void renew_code(void)
{
    const struct code c = find_code();
    size_t n = (size_t)(c.to - c.from), room = n + HUGE_PAGE;
    char *space, *copy;

    if (n == 0)
        return;
    space = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED)
        return;
    copy = round_up((unsigned long)space);
    (void)madvise(copy, n, MADV_HUGEPAGE);
    memcpy(copy, c.from, n);
    if (huge_bytes(copy) < n || mprotect(copy, n, PROT_READ | PROT_EXEC) < 0 ||
        mremap(copy, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, c.from) == MAP_FAILED)
        (void)munmap(space, room);
}
