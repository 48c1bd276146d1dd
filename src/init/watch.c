/* SPDX-License-Identifier: MIT */
#include "init/watch.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "init/process_tree.h"

const int watch_ms = 25;

static const char *const mounts[] = {"/workspace", "/tmp", "/dev/shm"};

/* What is resident and not a file's: shared memory is counted by the mounts. Cheap, but pages that
 * forked processes still share count once for each. */
static uint64_t resident(int proc, const char *pid)
{
    unsigned long size, in_core = 0, shared = 0;
    char path[32], text[128] = "";
    cleanup_close int fd = -1;

    (void)snprintf(path, sizeof path, "%.10s/statm", pid);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 ||
        sscanf(text, "%lu %lu %lu", &size, &in_core, &shared) != 3 || in_core < shared)
        return 0;
    return (uint64_t)(in_core - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Exact: a page shared by n processes counts one n-th for each. Walks page tables. */
static uint64_t proportional(int proc, const char *pid)
{
    char path[32], text[2048] = "";
    cleanup_close int fd = -1;
    const char *at;

    (void)snprintf(path, sizeof path, "%.10s/smaps_rollup", pid);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return resident(proc, pid); /* ours alone: init may not look at itself */
    at = strstr(text, "Pss_Anon:");
    return at ? strtoull(at + 9, NULL, 10) * 1024 : 0;
}

/* A kept workspace is a directory of the host: its file system is not ours to count, and it is on a
 * disk. Only the root of a tmpfs, always its inode 1, is one that was made for this sandbox. */
static uint64_t mounted_bytes(const char *path)
{
    struct statfs s;
    struct stat st;

    if (statfs(path, &s) < 0 || s.f_type != TMPFS_MAGIC || stat(path, &st) < 0 || st.st_ino != 1)
        return 0;
    return (uint64_t)(s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize;
}

/* All processes, each as `measure` sees it. */
static uint64_t processes(uint64_t (*measure)(int proc, const char *pid))
{
    DIR *d = opendir("/proc");
    uint64_t sum = 0;

    if (!d)
        return 0;
    for (struct dirent *at; (at = readdir(d));)
        if (isdigit((unsigned char)at->d_name[0]))
            sum += measure(dirfd(d), at->d_name);
    (void)closedir(d);
    return sum;
}

/* The same for some of them. */
struct sum {
    int proc;
    uint64_t bytes;
    uint64_t (*measure)(int proc, const char *pid);
};

static void add_one(void *user, pid_t pid)
{
    struct sum *s = user;
    char name[16];

    (void)snprintf(name, sizeof name, "%d", (int)pid);
    s->bytes += s->measure(s->proc, name);
}

static uint64_t processes_below(pid_t top, uint64_t (*measure)(int proc, const char *pid))
{
    cleanup_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct sum s = {.proc = proc, .measure = measure};

    if (proc >= 0)
        tree_each(top, add_one, &s);
    return s.bytes;
}

uint64_t watch_memory_used(pid_t top, uint64_t max)
{
    uint64_t files = 0, quick;

    if (top != 0) { /* files are on a disk, or somebody else's */
        quick = processes_below(top, resident);
        return quick <= max ? quick : processes_below(top, proportional);
    }
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
        files += mounted_bytes(mounts[i]);
    quick = files + processes(resident);
    return quick <= max ? quick : files + processes(proportional);
}

bool watch_exceeded(pid_t top, uint64_t max)
{
    return watch_memory_used(top, max) > max;
}
