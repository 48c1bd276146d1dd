/* SPDX-License-Identifier: MIT */
#include "jail/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

enum file { FILE_CPU, FILE_MEMORY, FILE_OOM, FILE_PIDS, FILE_ALIVE, FILE_PROCESSES };

enum { OURS = 2 }; /* the keeper and init */

/* The number after `key`, or the first one when key is ""; -1 when it cannot be read. */
static int64_t number(const struct usage_files *u, enum file f, const char *key)
{
    char text[1024];
    const char *at;
    ssize_t n = u->fd[f] < 0 ? -1 : pread(u->fd[f], text, sizeof text - 1, 0);

    if (n <= 0)
        return -1;
    text[n] = '\0';
    at = strstr(text, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static int64_t cpu_us(const struct usage_files *u)
{
    int64_t v;

    if (u->v2)
        return number(u, FILE_CPU, "usage_usec ");
    v = number(u, FILE_CPU, "");
    return v < 0 ? v : v / 1000;
}

void usage_files_init(struct usage_files *u)
{
    for (size_t i = 0; i < LAUNCH_FDS_STARTED; i++)
        u->fd[i] = -1;
}

void usage_files_set(struct usage_files *u, int fds[LAUNCH_FDS_STARTED], bool v2)
{
    usage_files_close(u);
    for (size_t i = 0; i < LAUNCH_FDS_STARTED; i++)
        u->fd[i] = take_fd(&fds[i]);
    u->v2 = v2;
    u->last = (struct usage_base){0};
}

void usage_files_close(struct usage_files *u)
{
    fd_close_all(u->fd, LAUNCH_FDS_STARTED);
}

void usage_mark(const struct usage_files *u, struct usage_base *ret)
{
    *ret = u->last;
    ret->cpu_us = cpu_us(u);
}

void usage_settle(struct usage_files *u)
{
    u->last.oom = number(u, FILE_OOM, "oom_kill ");
    u->last.pids = number(u, FILE_PIDS, "max ");
}

void usage_mark_cpu(const struct usage_files *u, struct usage_base *ret)
{
    ret->cpu_us = cpu_us(u);
}

/*
 * The list has a line for each process, whatever threads it has. The kernel walks it from the
 * oldest to the newest, so a process that forks another and ends is not missed. It is opened again,
 * because version 1 keeps for a second what an open file has shown once.
 */
static int processes(const struct usage_files *u)
{
    cleanup_close int fd = -1;
    char path[32], text[256];
    ssize_t n;
    int lines = 0;

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", u->fd[FILE_PROCESSES]);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text);
    for (ssize_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return n == sizeof text ? -1 : lines;
}

bool usage_is_alone(const struct usage_files *u, bool threads)
{
    return threads ? processes(u) == OURS + 1 : number(u, FILE_ALIVE, "") == OURS + 1;
}

static int64_t since(int64_t now, int64_t before)
{
    return now < 0 || before < 0 ? -1 : now - before;
}

void usage_since(const struct usage_files *u, const struct usage_base *base, bool denied,
                 struct usage *ret)
{
    ret->cpu_us = since(cpu_us(u), base->cpu_us);
    ret->memory_peak = number(u, FILE_MEMORY, "");
    ret->oom_kills = since(number(u, FILE_OOM, "oom_kill "), base->oom);
    if (denied)
        ret->pids_denied = since(number(u, FILE_PIDS, "max "), base->pids);
}
