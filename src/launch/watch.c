/* SPDX-License-Identifier: MIT */
#include "launch/watch.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

static const char *const mounts[] = {"/workspace", "/tmp", "/dev/shm"};

/* Resident pages that are not a file's: those in shared memory are counted by the mounts. */
static uint64_t process_pages(int proc, const char *pid)
{
    unsigned long size, resident = 0, shared = 0;
    char path[32], text[128] = "";
    cleanup_close int fd = -1;

    (void)snprintf(path, sizeof path, "%.10s/statm", pid);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 ||
        sscanf(text, "%lu %lu %lu", &size, &resident, &shared) != 3 || resident < shared)
        return 0;
    return resident - shared;
}

static uint64_t mounted_bytes(const char *path)
{
    struct statfs s;

    return statfs(path, &s) < 0 ? 0 : (uint64_t)(s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize;
}

uint64_t watch_memory_used(void)
{
    DIR *d = opendir("/proc");
    uint64_t pages = 0, bytes = 0;

    if (!d)
        return 0;
    for (struct dirent *at; (at = readdir(d));)
        if (isdigit((unsigned char)at->d_name[0]))
            pages += process_pages(dirfd(d), at->d_name);
    (void)closedir(d);
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
        bytes += mounted_bytes(mounts[i]);
    return bytes + pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
