/* SPDX-License-Identifier: MIT */
#include "launch/hot.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

enum { PAGE = 4096, ENTRIES = 512, MAPPING_MAX = 1 << 30 };

/* Of an entry of /proc/self/pagemap. */
#define PAGEMAP_THERE (UINT64_C(1) << 63)
#define PAGEMAP_FILE  (UINT64_C(1) << 61)
#define PAGEMAP_OWN   (UINT64_C(1) << 56) /* nobody else has it */

static void add(struct hot_runs *r, uintptr_t page)
{
    struct iovec *last = r->n ? &r->of[r->n - 1] : NULL;

    if (last && (uintptr_t)last->iov_base + last->iov_len == page)
        last->iov_len += PAGE;
    else if (r->n < HOT_RUNS_MAX)
        r->of[r->n++] = (struct iovec){.iov_base = (void *)page, .iov_len = PAGE};
}

/* What is not of a file and nobody else's has been written to. */
static void note(struct hot *h, uintptr_t page, uint64_t entry)
{
    if (!(entry & PAGEMAP_THERE))
        return;
    if (entry & PAGEMAP_FILE)
        add(&h->read, page);
    else if (entry & PAGEMAP_OWN)
        add(&h->written, page);
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
            note(h, begin, entries[i]);
    }
}

/* A line of /proc/self/maps: private memory that is more than a reservation? */
static bool is_of_interest(const char *line, unsigned long *ret_begin, unsigned long *ret_end)
{
    unsigned long inode;
    char how[5];

    return sscanf(line, "%lx-%lx %4s %*s %*s %lu", ret_begin, ret_end, how, &inode) == 4 &&
           how[3] == 'p' && (inode || how[1] == 'w') && *ret_end - *ret_begin <= MAPPING_MAX;
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

/* What the copy notes is shared memory, else it would be noted, too. */
static void learn(struct hot *h, void (*trial)(void *user), void *user)
{
    struct hot *seen =
        mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;
    pid_t pid;

    h->written.n = h->read.n = 0;
    if (seen == MAP_FAILED)
        return;
    pid = fork();
    if (pid == 0) {
        trial(user);
        look(seen);
        _exit(0);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        *h = *seen;
    (void)munmap(seen, sizeof *seen);
}

/*
 * A fork copies the page tables of a file's mapping only if some of it is private. So one byte of
 * each run becomes that, by being written over with itself; then what copies read is there at once.
 */
static void anchor(const struct hot_runs *r)
{
    cleanup_close int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; i < r->n; i++) {
        const volatile char *p = r->of[i].iov_base;
        char same = *p;

        (void)!pwrite(mem, &same, 1, (off_t)(uintptr_t)p);
        for (size_t at = 0; at < r->of[i].iov_len; at += PAGE)
            (void)p[at];
    }
}

void hot_settle(struct hot *h, void (*trial)(void *user), void *user)
{
    learn(h, trial, user);
    anchor(&h->read);
}

void hot_pin(const struct hot *h)
{
    struct io_uring_params params = {0};
    int ring = h->written.n > 0 ? (int)syscall(SYS_io_uring_setup, 1, &params) : -1;

    /* The descriptor stays open as long as the process lives. */
    if (ring >= 0 && syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, h->written.of,
                             (unsigned)h->written.n) < 0)
        (void)close(ring);
}
