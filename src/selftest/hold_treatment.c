/* SPDX-License-Identifier: MIT */
/* When a process runs, when it is killed, and what of the kernel it could set. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "selftest/hold.h"

enum { STAT_NICE = 16, STAT_POLICY = 38 };
enum { IOPRIO_PROCESS = 1, IOPRIO_REALTIME = 1, IOPRIO_SHIFT = 13 };

bool look_at_scheduling(const struct hold *h, long pid, char *out, size_t max)
{
    long nice = hold_stat(pid, STAT_NICE), policy = hold_stat(pid, STAT_POLICY);
    long disk = syscall(SYS_ioprio_get, IOPRIO_PROCESS, pid);

    (void)h;
    return (nice < 0 || policy == SCHED_FIFO || policy == SCHED_RR ||
            (disk >= 0 && disk >> IOPRIO_SHIFT == IOPRIO_REALTIME)) &&
           snprintf(out, max, "seen outside: nice %ld, policy %ld, disks %ld", nice, policy, disk) >
               0;
}

/* The process that has to end it was made to wait. */
bool look_at_slowness(const struct hold *h, long pid, char *out, size_t max)
{
    long parent = hold_parent(pid), nice = hold_stat(parent, STAT_NICE),
         policy = hold_stat(parent, STAT_POLICY);

    return (nice > h->usual->nice || policy != h->usual->policy) &&
           snprintf(out, max, "seen outside: its parent has nice %ld, policy %ld", nice, policy) >
               0;
}

/* It, or its parent, would be killed later than we are. */
bool look_at_score(const struct hold *h, long pid, char *out, size_t max)
{
    const long both[] = {pid, hold_parent(pid)};
    char text[HOLD_TEXT];

    for (size_t i = 0; i < ARRAY_LEN(both); i++)
        if (hold_read(both[i], "oom_score_adj", text) > 0 &&
            strtol(text, NULL, 10) < h->usual->score)
            return snprintf(out, max, "seen outside: %s would be killed late",
                            i ? "its parent" : "it") > 0;
    return false;
}

static bool is_for_writing(long pid, const char *number)
{
    char name[64], text[HOLD_TEXT];
    const char *flags;

    (void)snprintf(name, sizeof name, "fdinfo/%.20s", number);
    (void)hold_read(pid, name, text);
    flags = strstr(text, "flags:");
    return flags && (strtol(flags + strlen("flags:"), NULL, 8) & O_ACCMODE) != O_RDONLY;
}

/* A descriptor by which something of the kernel could be set. */
bool look_at_settings(const struct hold *h, long pid, char *out, size_t max)
{
    char path[64];
    bool seen = false;
    DIR *d;

    (void)h;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd", pid);
    d = opendir(path);
    for (struct dirent *at; d && !seen && (at = readdir(d));) {
        cleanup_close int fd = openat(dirfd(d), at->d_name, O_PATH | O_CLOEXEC);
        struct statfs fs;

        seen = at->d_name[0] != '.' && fd >= 0 && fstatfs(fd, &fs) == 0 &&
               (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC) &&
               is_for_writing(pid, at->d_name) &&
               snprintf(out, max, "seen outside: a setting of the kernel, open") > 0;
    }
    if (d)
        (void)closedir(d);
    return seen;
}
