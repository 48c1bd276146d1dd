/* SPDX-License-Identifier: MIT */
#include "zygote/hot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"

enum { PAGE = 4096, HUGE_PAGE = 2 << 20, ENTRIES = 512, MAPPING_MAX = 1 << 30, TRIAL_MS = 15000 };

/* Of an entry of /proc/self/pagemap. */
#define PAGEMAP_THERE (UINT64_C(1) << 63)
#define PAGEMAP_FILE  (UINT64_C(1) << 61)
#define PAGEMAP_OWN   (UINT64_C(1) << 56) /* nobody else has it */

static void add(struct hot *h, uintptr_t page)
{
    struct iovec *last = h->n ? &h->runs[h->n - 1] : NULL;

    if (last && (uintptr_t)last->iov_base + last->iov_len == page)
        last->iov_len += PAGE;
    else if (h->n < HOT_RUNS_MAX)
        h->runs[h->n++] = (struct iovec){.iov_base = (void *)page, .iov_len = PAGE};
}

/* What is not of a file and nobody else's has been written to. */
static bool is_written(uint64_t entry)
{
    return (entry & (PAGEMAP_THERE | PAGEMAP_OWN | PAGEMAP_FILE)) == (PAGEMAP_THERE | PAGEMAP_OWN);
}

static void look_at(struct hot *h, int pagemap, uintptr_t begin, uintptr_t end)
{
    uint64_t entries[ENTRIES];

    while (begin < end) {
        size_t want = (end - begin) / PAGE < ENTRIES ? (end - begin) / PAGE : ENTRIES;
        ssize_t got = pread(pagemap, entries, want * sizeof *entries,
                            (off_t)(begin / PAGE * sizeof *entries));

        if (got < (ssize_t)sizeof *entries)
            return;
        for (size_t i = 0; i < (size_t)got / sizeof *entries; i++, begin += PAGE)
            if (is_written(entries[i]))
                add(h, begin);
    }
}

/* A line of /proc/self/maps: private memory that can be written to, and more than a reservation? */
static bool is_of_interest(const char *line, unsigned long *ret_begin, unsigned long *ret_end)
{
    char how[5];

    return sscanf(line, "%lx-%lx %4s", ret_begin, ret_end, how) == 3 && how[1] == 'w' &&
           how[3] == 'p' && *ret_end - *ret_begin <= MAPPING_MAX;
}

/* In a copy. */
static void look(struct hot *h)
{
    cleanup_close int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long begin, end;
    char line[512];

    while (maps && fgets(line, sizeof line, maps))
        if (is_of_interest(line, &begin, &end))
            look_at(h, pagemap, begin, end);
    if (maps)
        (void)fclose(maps);
}

int hot_await(pid_t pid, int ms, int *ret_status)
{
    cleanup_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (fd < 0)
        return -errno;
    if (poll(&p, 1, ms) <= 0)
        return -ETIMEDOUT;
    return waitpid(pid, ret_status, 0) == pid ? 0 : -errno;
}

/* Did it say all it had to, in time? */
static bool has_told(pid_t copy)
{
    cleanup_reap pid_t pid = copy;
    int status;

    if (hot_await(pid, TRIAL_MS, &status) < 0)
        return false;
    (void)take_pid(&pid);
    return status == 0;
}

/* What the copy notes is shared memory, else it would be noted, too. */
bool hot_try(struct hot *h, pid_t (*copy)(void))
{
    struct hot *seen =
        mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    h->n = 0;
    if (seen == MAP_FAILED)
        return false;
    h->seen = seen;
    pid = copy ? copy() : fork();
    if (pid == 0)
        return true;
    if (pid > 0 && has_told(pid))
        *h = *seen;
    h->seen = NULL;
    (void)munmap(seen, sizeof *seen);
    return false;
}

void hot_tell(const struct hot *h)
{
    look(h->seen);
    _exit(0);
}

static bool is_hot(const struct hot *h, uintptr_t page)
{
    for (size_t i = 0; i < h->n; i++)
        if (page - (uintptr_t)h->runs[i].iov_base < h->runs[i].iov_len)
            return true;
    return false;
}

static bool is_empty(uintptr_t page)
{
    const uint64_t *at = (const uint64_t *)page;

    for (size_t i = 0; i < PAGE / sizeof *at; i++)
        if (at[i])
            return false;
    return true;
}

static void thin(const struct hot *h, uintptr_t begin, uintptr_t end)
{
    for (uintptr_t page = begin; page < end; page += PAGE)
        if (is_empty(page) && !is_hot(h, page))
            (void)madvise((void *)page, PAGE, MADV_DONTNEED);
}

/* All of it is there, and of no file? */
static bool is_whole(int pagemap, uintptr_t block)
{
    uint64_t entries[HUGE_PAGE / PAGE];
    off_t at = (off_t)(block / PAGE * sizeof *entries);

    if (pread(pagemap, entries, sizeof entries, at) != sizeof entries)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(entries); i++)
        if ((entries[i] & (PAGEMAP_THERE | PAGEMAP_FILE)) != PAGEMAP_THERE)
            return false;
    return true;
}

void hot_thin(const struct hot *h)
{
    cleanup_close int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uintptr_t last = 0;

    for (size_t i = 0; i < h->n; i++) {
        uintptr_t block = (uintptr_t)h->runs[i].iov_base & ~(uintptr_t)(HUGE_PAGE - 1);

        if (block != last && is_whole(pagemap, block))
            thin(h, block, block + HUGE_PAGE);
        last = block;
    }
}

void hot_pin(const struct hot *h)
{
    struct io_uring_params params = {0};
    int ring = h->n > 0 ? (int)syscall(SYS_io_uring_setup, 1, &params) : -1;

    /* The descriptor stays open as long as the process lives. */
    if (ring >= 0 &&
        syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, h->runs, (unsigned)h->n) < 0)
        (void)close(ring);
}
