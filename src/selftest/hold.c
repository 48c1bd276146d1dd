/* SPDX-License-Identifier: MIT */
/* A process waits to be looked at. This looks at the process, not at its words. */
#include "selftest/hold.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"

enum { LINK_ROOM = 200 };

size_t hold_read(long pid, const char *name, char out[HOLD_TEXT])
{
    char path[64];
    cleanup_close int fd = -1;
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : fd_read_full(fd, out, HOLD_TEXT - 1);
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

long hold_stat(long pid, int index)
{
    char text[HOLD_TEXT], *at;

    (void)hold_read(pid, "stat", text);
    at = strrchr(text, ')');
    for (int i = 0; at && i <= index; i++)
        at = strchr(at + 1, ' ');
    return at ? strtol(at, NULL, 10) : 0;
}

long hold_parent(long pid)
{
    return hold_stat(pid, 1);
}

/* The rest of the line of a status file that begins with `name`, without what separates. */
static void line_of(long pid, const char *file, const char *name, char out[LINK_ROOM])
{
    char text[HOLD_TEXT];
    const char *at;

    out[0] = '\0';
    (void)hold_read(pid, file, text);
    at = strstr(text, name);
    if (!at)
        return;
    at += strlen(name);
    at += strspn(at, " \t");
    (void)snprintf(out, LINK_ROOM, "%.*s", (int)strcspn(at, "\n"), at);
}

/* ---- one look for each eye; true: something is there that must not be ---- */

typedef bool look_fn(const struct hold *h, long pid, char *out, size_t max);

static bool look_at_descriptor(const struct hold *h, long pid, char *out, size_t max)
{
    char name[32], link[LINK_ROOM];

    if (h->n < 0)
        return false;
    (void)snprintf(name, sizeof name, "fd/%ld", h->n);
    proc_link(pid, name, link);
    return link[0] && snprintf(out, max, "seen outside: %.80s", link) > 0;
}

static bool look_at_namespaces(const struct hold *h, long pid, char *out, size_t max)
{
    static const char *const kinds[] = {"user", "net", "pid", "ipc", "uts", "cgroup", "mnt"};
    char name[32], mine[LINK_ROOM], other[LINK_ROOM];

    (void)h;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        (void)snprintf(name, sizeof name, "ns/%s", kinds[i]);
        proc_link(pid, name, mine);
        proc_link(hold_parent(pid), name, other);
        if (mine[0] && other[0] && strcmp(mine, other) != 0) {
            (void)snprintf(out, max, "seen outside in %.60s", mine);
            return true;
        }
    }
    return false;
}

/* A sum over the lines of a mount table that does not depend on their order or numbers. */
static unsigned long mounts_of(long pid)
{
    char text[HOLD_TEXT], *save = NULL;
    unsigned long sum = 0;

    (void)hold_read(pid, "mountinfo", text);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *end = strstr(line, " - ");
        unsigned long hash = 5381;

        for (int i = 0; i < 2 && line; i++) /* numbers of the mount and of its parent */
            line = strchr(line + 1, ' ');
        for (const char *c = line; c && *c && c != end; c++)
            hash = strncmp(c, "shared:", 7) == 0 || strncmp(c, "master:", 7) == 0
                       ? hash
                       : hash * 33 + (unsigned char)*c;
        for (const char *c = end; c && *c; c++)
            hash = hash * 33 + (unsigned char)*c;
        sum += hash;
    }
    return sum;
}

static bool look_at_mounts(const struct hold *h, long pid, char *out, size_t max)
{
    (void)h;
    return mounts_of(pid) != mounts_of(hold_parent(pid)) &&
           snprintf(out, max, "seen outside: other mounts") > 0;
}

static bool look_at_root(const struct hold *h, long pid, char *out, size_t max)
{
    char link[LINK_ROOM], other[LINK_ROOM];

    (void)h;
    proc_link(pid, "root", link);
    proc_link(hold_parent(pid), "root", other);
    return link[0] && other[0] && strcmp(link, other) != 0 &&
           snprintf(out, max, "seen outside: root %.80s", link) > 0;
}

static bool look_at_tree(const struct hold *h, long pid, char *out, size_t max)
{
    char text[HOLD_TEXT];

    (void)h;
    (void)hold_read(pid, "mountinfo", text);
    return (strstr(text, " - cgroup") || strstr(text, " - sysfs ")) &&
           snprintf(out, max, "seen outside: control groups or /sys") > 0;
}

static bool look_at_nodes(const struct hold *h, long pid, char *out, size_t max)
{
    static const char harmless[] = " null zero full random urandom tty ptmx pts shm fd stdin "
                                   "stdout stderr core mqueue console ";
    char path[64], word[NAME_MAX + 3];
    bool seen = false;
    DIR *d;

    (void)h;
    (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, "root/dev");
    d = opendir(path);
    for (struct dirent *at; d && !seen && (at = readdir(d));) {
        (void)snprintf(word, sizeof word, " %s ", at->d_name);
        seen = at->d_name[0] != '.' && !strstr(harmless, word) &&
               snprintf(out, max, "seen outside: /dev/%.60s", at->d_name) > 0;
    }
    if (d)
        (void)closedir(d);
    return seen;
}

static bool look_at_node(const struct hold *h, long pid, char *out, size_t max)
{
    char path[64];
    struct stat st;

    (void)h;
    (void)snprintf(path, sizeof path, "/proc/%ld/cwd/node", pid);
    return lstat(path, &st) == 0 && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode)) &&
           snprintf(out, max, "seen outside: a device in the workspace") > 0;
}

static bool look_at_capabilities(const struct hold *h, long pid, char *out, size_t max)
{
    static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};
    char set[LINK_ROOM];

    (void)h;
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        line_of(pid, "status", sets[i], set);
        if (set[strspn(set, "0")])
            return snprintf(out, max, "seen outside: %s %.20s", sets[i], set) > 0;
    }
    return false;
}

/* Root, or not what its parent is. */
static bool look_at_ids(const struct hold *h, long pid, char *out, size_t max)
{
    static const char *const lines[] = {"\nUid:", "\nGid:", "\nGroups:"};
    char mine[LINK_ROOM], other[LINK_ROOM];

    (void)h;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        line_of(pid, "status", lines[i], mine);
        line_of(hold_parent(pid), "status", lines[i], other);
        if ((mine[0] == '0' && i < 2) || strcmp(mine, other) != 0)
            return snprintf(out, max, "seen outside: %s %.40s", lines[i] + 1, mine) > 0;
    }
    return false;
}

/* "name: value" of its status is not what it should be. */
static bool status_is_not(long pid, const char *name, const char *want, char *out, size_t max)
{
    char value[LINK_ROOM];

    line_of(pid, "status", name, value);
    return value[0] && strcmp(value, want) != 0 &&
           snprintf(out, max, "seen outside: %s %.40s", name, value) > 0;
}

static bool look_at_nnp(const struct hold *h, long pid, char *out, size_t max)
{
    (void)h;
    return status_is_not(pid, "NoNewPrivs:", "1", out, max);
}

/* Where nobody may trace it can only be seen that there is a filter at all. */
static bool look_at_answer(const struct hold *h, long pid, char *out, size_t max)
{
    /* the last is what a filter says of families of sockets */
    static const int refusals[] = {EPERM, ENOSYS, EACCES, EAFNOSUPPORT};
    long answer;

    if (h->n < 0)
        return false;
    if (hold_call(pid, h->n, &answer) < 0) {
        *h->ret_weak = true;
        return status_is_not(pid, "Seccomp:", "2", out, max);
    }
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
        if (answer == -refusals[i])
            return false;
    return snprintf(out, max, "seen outside: call %ld was answered %ld", h->n, answer) > 0;
}

static bool look_at_locked(const struct hold *h, long pid, char *out, size_t max)
{
    (void)h;
    return status_is_not(pid, "VmLck:", "0 kB", out, max);
}

static bool look_at_core(const struct hold *h, long pid, char *out, size_t max)
{
    char value[LINK_ROOM], soft[24], hard[24];

    (void)h;
    line_of(pid, "limits", "Max core file size", value);
    return sscanf(value, "%23s %23s", soft, hard) == 2 &&
           (strcmp(soft, "1") != 0 || strcmp(hard, "1") != 0) &&
           snprintf(out, max, "seen outside: core dumps, limits %s and %s", soft, hard) > 0;
}

static bool look_at_rttime(const struct hold *h, long pid, char *out, size_t max)
{
    char value[LINK_ROOM];

    (void)h;
    line_of(hold_parent(pid), "limits", "Max realtime timeout", value);
    return value[0] >= '0' && value[0] <= '9' &&
           snprintf(out, max, "seen outside: a limit of its parent") > 0;
}

static bool look_at_personality(const struct hold *h, long pid, char *out, size_t max)
{
    char text[HOLD_TEXT];

    (void)h;
    (void)hold_read(pid, "personality", text);
    return strtol(text, NULL, 16) != 0 &&
           snprintf(out, max, "seen outside: personality %.8s", text) > 0;
}

static bool look_at_addresses(const struct hold *h, long pid, char *out, size_t max)
{
    char text[HOLD_TEXT];

    (void)h;
    (void)hold_read(pid, "net/fib_trie", text);
    return strstr(text, "|-- 10.") && snprintf(out, max, "seen outside: its address") > 0;
}

/* It, its parent or a child of it. */
static bool look_at_tracers(const struct hold *h, long pid, char *out, size_t max)
{
    DIR *d = opendir("/proc");
    bool seen = false;

    (void)h;
    for (struct dirent *at; d && !seen && (at = readdir(d));) {
        long other = strtol(at->d_name, NULL, 10);

        if (other == pid || (other > 0 && (other == hold_parent(pid) || hold_parent(other) == pid)))
            seen = status_is_not(other, "TracerPid:", "0", out, max);
    }
    if (d)
        (void)closedir(d);
    return seen;
}

/* What leads from a process to a file leads past its root: the mount decides. */
static bool look_at_program(const struct hold *h, long pid, char *out, size_t max)
{
    char path[64];
    struct statvfs fs;
    struct stat st;

    (void)h;
    (void)snprintf(path, sizeof path, "/proc/%ld/exe", pid);
    if (stat(path, &st) < 0 || statvfs(path, &fs) < 0)
        return false;
    if (st.st_mode & (S_ISUID | S_IWOTH))
        return snprintf(out, max, "seen outside: a program of mode %o", st.st_mode & 07777u) > 0;
    return !(fs.f_flag & ST_RDONLY) &&
           snprintf(out, max, "seen outside: its program is on a mount that can be written") > 0;
}

static bool look_at_paths(const struct hold *h, long pid, char *out, size_t max)
{
    static const char *const files[] = {"maps", "mountinfo"};
    const char *own = h->usual->programs;
    char link[LINK_ROOM], path[64], line[1024];
    bool seen;

    proc_link(pid, "exe", link);
    seen = own[0] && strstr(link, own);
    for (size_t i = 0; i < ARRAY_LEN(files) && own[0]; i++) {
        FILE *f;

        (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, files[i]);
        f = fopen(path, "re");
        while (f && !seen && fgets(line, sizeof line, f))
            seen = strstr(line, own) != NULL;
        if (f)
            (void)fclose(f);
    }
    return seen && snprintf(out, max, "seen outside: names of %.100s", own) > 0;
}

static look_fn *const looks[EYE_COUNT] = {
    [EYE_FD] = look_at_descriptor,
    [EYE_SPACES] = look_at_namespaces,
    [EYE_MOUNTS] = look_at_mounts,
    [EYE_ROOT] = look_at_root,
    [EYE_TREE] = look_at_tree,
    [EYE_NODES] = look_at_nodes,
    [EYE_NODE] = look_at_node,
    [EYE_CAPS] = look_at_capabilities,
    [EYE_IDS] = look_at_ids,
    [EYE_NNP] = look_at_nnp,
    [EYE_CALL] = look_at_answer,
    [EYE_CORE] = look_at_core,
    [EYE_PROGRAM] = look_at_program,
    [EYE_PATHS] = look_at_paths,
    [EYE_LOCKED] = look_at_locked,
    [EYE_SCHED] = look_at_scheduling,
    [EYE_TRACER] = look_at_tracers,
    [EYE_RTTIME] = look_at_rttime,
    [EYE_PERSONA] = look_at_personality,
    [EYE_LINK] = look_at_addresses,
    [EYE_SLOWED] = look_at_slowness,
    [EYE_SCORE] = look_at_score,
    [EYE_SETTINGS] = look_at_settings,
};

/* ---- finding it ---- */

/* Is the mark its name, or among its arguments but not the first? The latter are the witness's. */
static bool is_attacker(const struct hold *h, long pid)
{
    char text[HOLD_TEXT];
    size_t n;

    if (pid <= 1 || pid == getpid() || pid == h->victim)
        return false;
    n = hold_read(pid, "comm", text);
    text[strcspn(text, "\n")] = '\0';
    if (n > 0 && strcmp(text, h->mark) == 0)
        return true;
    n = hold_read(pid, "cmdline", text);
    return n > 0 && strcmp(text, h->mark) != 0 && memmem(text, n, h->mark, strlen(h->mark));
}

bool hold_look(const struct hold *h, char *out, size_t max)
{
    struct hold_count count = {0};
    DIR *d = opendir("/proc");
    bool seen = false;

    for (struct dirent *at; d && !seen && (at = readdir(d));) {
        long pid = strtol(at->d_name, NULL, 10);

        if (!is_attacker(h, pid))
            continue;
        if (looks[h->eye])
            seen = looks[h->eye](h, pid, out, max);
        else
            hold_count_add(h, pid, &count);
    }
    if (d)
        (void)closedir(d);
    return seen || hold_count_is_over(h, &count, out, max);
}
