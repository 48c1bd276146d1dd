/* SPDX-License-Identifier: MIT */
/* A process says that it holds something. This looks at the process, not at its words. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "selftest/carry.h"

enum { LINK_ROOM = 200, TEXT_ROOM = 4096 };

static size_t proc_read(long pid, const char *name, char out[TEXT_ROOM])
{
    char path[64];
    cleanup_close int fd = -1;
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, out, TEXT_ROOM - 1);
    out[n < 0 ? 0 : n] = '\0';
    return n < 0 ? 0 : (size_t)n;
}

static void proc_link(long pid, const char *name, char out[LINK_ROOM])
{
    char path[64];
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    n = readlink(path, out, LINK_ROOM - 1);
    out[n < 0 ? 0 : n] = '\0';
}

static long parent_of(long pid)
{
    char text[TEXT_ROOM];
    const char *at;

    (void)proc_read(pid, "stat", text);
    at = strrchr(text, ')');
    return at && strlen(at) > 4 ? strtol(at + 4, NULL, 10) : 0;
}

static int lines_of(long pid, const char *name)
{
    char text[TEXT_ROOM];
    int lines = 0;

    (void)proc_read(pid, name, text);
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    return lines;
}

static bool look_at_namespaces(long pid, char *out, size_t max)
{
    static const char *const kinds[] = {"user", "net", "pid", "ipc", "uts", "cgroup", "mnt"};
    char name[32], mine[LINK_ROOM], other[LINK_ROOM];

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        (void)snprintf(name, sizeof name, "ns/%s", kinds[i]);
        proc_link(pid, name, mine);
        proc_link(parent_of(pid), name, other);
        if (mine[0] && other[0] && strcmp(mine, other) != 0) {
            (void)snprintf(out, max, "seen outside in %.60s", mine);
            return true;
        }
    }
    return false;
}

static bool look_at(long pid, const char *what, long n, char *out, size_t max)
{
    char name[32], link[LINK_ROOM], other[LINK_ROOM], text[TEXT_ROOM];
    const char *at;

    if (strcmp(what, "fd") == 0) {
        (void)snprintf(name, sizeof name, "fd/%ld", n);
        proc_link(pid, name, link);
        return link[0] && snprintf(out, max, "seen outside: %.80s", link) > 0;
    }
    if (strcmp(what, "namespace") == 0)
        return look_at_namespaces(pid, out, max);
    if (strcmp(what, "mount") == 0)
        return lines_of(pid, "mountinfo") > lines_of(parent_of(pid), "mountinfo") &&
               snprintf(out, max, "seen outside: one mount more") > 0;
    if (strcmp(what, "root") == 0) {
        proc_link(pid, "root", link);
        proc_link(parent_of(pid), "root", other);
        return strcmp(link, other) != 0 && snprintf(out, max, "seen outside: root %.80s", link) > 0;
    }
    if (strcmp(what, "status") != 0 || proc_read(pid, "status", text) == 0)
        return false;
    at = strstr(text, "CapEff:");
    return at && snprintf(out, max, "seen outside: %.24s", at) > 0;
}

/* Is the mark among its arguments, but not its name? Those by that name are the witness's. */
static bool carries(long pid, const char *mark)
{
    char text[TEXT_ROOM];
    size_t n = proc_read(pid, "cmdline", text);

    return n > 0 && strcmp(text, mark) != 0 && memmem(text, n, mark, strlen(mark));
}

bool hold_look(const char *mark, const char *what, long n, char *out, size_t max)
{
    DIR *d = opendir("/proc");
    bool seen = false;

    for (struct dirent *at; d && !seen && (at = readdir(d));) {
        long pid = strtol(at->d_name, NULL, 10);

        if (pid > 1 && pid != getpid() && carries(pid, mark))
            seen = look_at(pid, what, n, out, max);
    }
    if (d)
        (void)closedir(d);
    return seen;
}
