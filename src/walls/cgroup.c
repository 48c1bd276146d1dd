/* SPDX-License-Identifier: MIT */
#include "walls/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum {
    SHARES_V1 = 2048,       /* all sandboxes together count as two processes beside them */
    WEIGHT_V2 = 200,        /* the same */
    RESIDUE_MAX = 16 << 20, /* memory beyond the baseline that may stay charged to a slot */
    BASELINE_MAX = 8 << 20, /* the first sandbox cannot raise it further by what it leaves */
    MAKE_TRIES = 10,
    SOCKETS_MAX = 64 << 20, /* version 1: buffers of TCP and UDP sockets, beside the memory */
    RECLAIM_MIN = 1 << 20,  /* kernel memory left in an empty group that is worth reclaiming */
};

static const char *const controller_names[] = {
    [CG_MEMORY] = "memory",   [CG_PIDS] = "pids",       [CG_CPU] = "cpu",
    [CG_CPUACCT] = "cpuacct", [CG_FREEZER] = "freezer",
};
_Static_assert(ARRAY_LEN(controller_names) == CG_CONTROLLER_COUNT, "every controller has a name");

/* What tells the usage: which hierarchy (version 1) and file. The daemon gets these descriptors, so
 * they are read-only but for the peak: the launcher resets it by writing, and version 2 resets it
 * for readers of the same open file only. */
static const struct {
    enum cgroup_controller controller;
    const char *v1, *v2;
    int flags;
} usage_files[] = {
    [CG_USED_CPU] = {CG_CPUACCT, "cpuacct.usage",             "cpu.stat",      O_RDONLY},
    [CG_USED_MEMORY] = {CG_MEMORY,  "memory.max_usage_in_bytes", "memory.peak",   O_RDWR  },
    [CG_USED_OOM] = {CG_MEMORY,  "memory.oom_control",        "memory.events", O_RDONLY},
    [CG_USED_PIDS] = {CG_PIDS,    "pids.events",               "pids.events",   O_RDONLY},
    [CG_USED_ALIVE] = {CG_PIDS,    "pids.current",              "pids.current",  O_RDONLY},
    [CG_USED_PROCESSES] = {CG_PIDS,    "cgroup.procs",              "cgroup.procs",  O_RDONLY},
};
_Static_assert(ARRAY_LEN(usage_files) == CG_USAGE_COUNT, "every usage has a file");

static void fclosep(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

static void closedirp(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static int write_at(int dir, const char *file, const char *text)
{
    cleanup_close int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int write_number(int dir, const char *file, uint64_t n)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return write_at(dir, file, text);
}

/* What a kernel without swap accounting does not have limits nothing there. */
static int write_if_there(int dir, const char *file, uint64_t n)
{
    int r = write_number(dir, file, n);

    return r == -ENOENT ? 0 : r;
}

static uint64_t read_number(int dir, const char *file)
{
    cleanup_close int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
    char text[32] = "";

    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        return 0;
    return strtoull(text, NULL, 10);
}

/* ---- finding the hierarchies ---- */

/* Is `word` one of the comma-separated words of list? */
static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; *p;) {
        size_t k = strcspn(p, ",");

        if (k == n && memcmp(p, word, n) == 0)
            return true;
        p += k + (p[k] == ',');
    }
    return false;
}

/* Our group's path in a hierarchy, from /proc/self/cgroup: "4:memory:/path", "0::/path". */
static bool own_path(const char *controller, char *ret, size_t max)
{
    cleanup_with(fclosep) FILE *f = fopen("/proc/self/cgroup", "re");
    char line[4400];

    while (f && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;

        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (*controller ? list_has(list + 1, controller) : list[1] == '\0')
            return (size_t)snprintf(ret, max, "%s", path) < max;
    }
    return false;
}

/* Where a hierarchy is mounted, from /proc/self/mountinfo; controller "" means version 2. */
static bool mount_point(const char *controller, char *ret, size_t max)
{
    cleanup_with(fclosep) FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[8192];

    while (f && fgets(line, sizeof line, f)) {
        char at[4096], type[32], options[512];
        const char *dash = strstr(line, " - ");

        if (!dash || sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1 ||
            sscanf(dash, " - %31s %*s %511s", type, options) != 2)
            continue;
        if (*controller ? strcmp(type, "cgroup") == 0 && list_has(options, controller)
                        : strcmp(type, "cgroup2") == 0)
            return (size_t)snprintf(ret, max, "%s", at) < max;
    }
    return false;
}

static int open_own(const char *controller)
{
    char at[4096], path[4096], full[8300];

    if (!mount_point(controller, at, sizeof at) || !own_path(controller, path, sizeof path))
        return -1;
    (void)snprintf(full, sizeof full, "%s%s", at, path);
    return open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A group with its slots; whatever still holds a process refuses and stays. */
static void remove_group(int up, const char *name)
{
    cleanup_close int sub = openat(up, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedirp) DIR *d = sub >= 0 ? fdopendir(sub) : NULL;

    for (struct dirent *at; d && (at = readdir(d));)
        if (at->d_type == DT_DIR && at->d_name[0] == 's')
            (void)unlinkat(sub, at->d_name, AT_REMOVEDIR);
    if (d)
        (void)take_fd(&sub); /* closedir() closes it */
    (void)unlinkat(up, name, AT_REMOVEDIR);
}

/* What a guard that was killed could not remove: nobody holds its lock any more. */
static void sweep(int up)
{
    cleanup_close int again = openat(up, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_with(closedirp) DIR *d = again >= 0 ? fdopendir(take_fd(&again)) : NULL;

    for (struct dirent *at; d && (at = readdir(d));) {
        cleanup_close int sub = -1;

        if (strncmp(at->d_name, "sandbox-executor.", 17) != 0)
            continue;
        sub = openat(up, at->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (sub >= 0 && flock(sub, LOCK_EX | LOCK_NB) == 0)
            remove_group(up, at->d_name);
    }
}

/* Ours, locked for as long as the guard lives. Between mkdir and lock another daemon's sweep may
 * take it for a leftover; then once more. */
static int make(struct cgroups *c, enum cgroup_controller k, int up)
{
    sweep(up);
    for (int tries = 0; tries < MAKE_TRIES; tries++) {
        cleanup_close int fd = -1;

        if (mkdirat(up, c->name, 0755) < 0 && errno != EEXIST)
            return -errno;
        fd = openat(up, c->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_SH) < 0 || faccessat(fd, "cgroup.procs", F_OK, 0) < 0)
            continue;
        c->dir[k] = take_fd(&fd);
        return 0;
    }
    return -EBUSY;
}

static bool open_v1(struct cgroups *c)
{
    for (size_t k = 0; k < CG_CONTROLLER_COUNT; k++) {
        c->up[k] = open_own(controller_names[k]);
        if (c->up[k] >= 0 && make(c, (enum cgroup_controller)k, c->up[k]) < 0)
            fd_close_all(&c->dir[k], 1);
    }
    if (c->dir[CG_CPU] >= 0)
        (void)write_number(c->dir[CG_CPU], "cpu.shares", SHARES_V1);
    return c->dir[CG_MEMORY] >= 0 && c->dir[CG_PIDS] >= 0;
}

static int move_to_main(int up, pid_t daemon)
{
    cleanup_close int leaf = -1;
    int r;

    if (mkdirat(up, "main", 0755) < 0 && errno != EEXIST)
        return -errno;
    leaf = openat(up, "main", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (leaf < 0)
        return -errno;
    r = write_number(leaf, "cgroup.procs", (uint64_t)daemon);
    return r < 0 ? r : write_at(leaf, "cgroup.procs", "0");
}

static bool open_v2(struct cgroups *c, pid_t daemon)
{
    static const char enable[] = "+memory +pids +cpu";
    int up = open_own(""), r;

    c->up[0] = up;
    if (up < 0)
        return false;
    r = write_at(up, "cgroup.subtree_control", enable);
    if (r == -EBUSY) {
        r = move_to_main(up, daemon);
        if (r == 0)
            r = write_at(up, "cgroup.subtree_control", enable);
    }
    if (r == 0)
        r = make(c, CG_MEMORY, up);
    if (r == 0)
        r = write_at(c->dir[CG_MEMORY], "cgroup.subtree_control", enable);
    if (r < 0)
        return snprintf(c->why, sizeof c->why, "cgroup v2: %s", strerror(-r)), false;
    (void)write_number(c->dir[CG_MEMORY], "cpu.weight", WEIGHT_V2);
    return true;
}

void cgroups_open(struct cgroups *ret, pid_t daemon)
{
    struct cgroups c = {0};

    for (size_t k = 0; k < CG_CONTROLLER_COUNT; k++)
        c.dir[k] = c.up[k] = -1;
    (void)snprintf(c.name, sizeof c.name, "sandbox-executor.%d", (int)getpid());
    (void)snprintf(c.why, sizeof c.why, "no writable cgroup with memory and pids controllers");
    if (open_v1(&c)) {
        c.version = 1;
    } else {
        cgroups_close(&c);
        (void)snprintf(c.name, sizeof c.name, "sandbox-executor.%d", (int)getpid());
        c.version = open_v2(&c, daemon) ? 2 : 0;
        if (c.version == 0)
            cgroups_close(&c);
    }
    *ret = c;
}

bool cgroups_has(const struct cgroups *c, enum cgroup_controller k)
{
    return c->version == 2 || c->dir[k] >= 0;
}

void cgroups_close(struct cgroups *c)
{
    for (size_t k = 0; k < CG_CONTROLLER_COUNT; k++) {
        if (c->up[k] >= 0)
            remove_group(c->up[k], c->name);
    }
    fd_close_all(c->dir, CG_CONTROLLER_COUNT);
    fd_close_all(c->up, CG_CONTROLLER_COUNT);
}

/* ---- slots ---- */

static int dir_of(const struct cgroups *c, enum cgroup_controller k)
{
    return c->version == 2 ? c->dir[CG_MEMORY] : c->dir[k];
}

static int open_in_slot(const struct cgroups *c, enum cgroup_controller k, unsigned slot,
                        const char *file, int flags)
{
    char path[96];
    int fd;

    if (dir_of(c, k) < 0)
        return -ENOENT;
    (void)snprintf(path, sizeof path, "s%u/%s", slot, file);
    fd = openat(dir_of(c, k), path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int slot_files(const struct cgroups *c, bool freezes, struct cgroup_slot *s)
{
    size_t hierarchies = c->version == 2 ? 1 : CG_CONTROLLER_COUNT;
    char name[16];

    (void)snprintf(name, sizeof name, "s%u", s->index);
    for (size_t k = 0; k < hierarchies; k++) {
        if (c->dir[k] < 0 || (k == CG_FREEZER && !freezes))
            continue;
        if (mkdirat(c->dir[k], name, 0755) < 0 && errno != EEXIST)
            return -errno;
        s->procs[k] =
            open_in_slot(c, (enum cgroup_controller)k, s->index, "cgroup.procs", O_WRONLY);
        if (s->procs[k] < 0)
            return s->procs[k];
    }
    for (size_t u = 0; u < CG_USAGE_COUNT; u++) {
        const char *file = c->version == 2 ? usage_files[u].v2 : usage_files[u].v1;
        enum cgroup_controller k = usage_files[u].controller;

        s->usage[u] = open_in_slot(c, k, s->index, file, usage_files[u].flags);
        if (s->usage[u] < 0 && usage_files[u].flags != O_RDONLY) /* KERNEL 6.12: no reset before */
            s->usage[u] = open_in_slot(c, k, s->index, file, O_RDONLY);
        if (s->usage[u] < 0) /* a missing one reads as empty */
            s->usage[u] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    return 0;
}

int cgroup_slot_open(const struct cgroups *c, unsigned index, bool freezes, struct cgroup_slot *ret,
                     struct err *e)
{
    struct cgroup_slot s = {.index = index};
    int r;

    for (size_t i = 0; i < CG_CONTROLLER_COUNT; i++)
        s.procs[i] = -1;
    for (size_t i = 0; i < CG_USAGE_COUNT; i++)
        s.usage[i] = -1;
    r = c->version ? slot_files(c, freezes, &s) : 0;
    if (r < 0) {
        cgroup_slot_close(&s);
        (void)cgroup_slot_remove(c, index);
        return err_sys(e, r, "control group of slot %u", index);
    }
    *ret = s;
    return 0;
}

void cgroup_slot_close(struct cgroup_slot *s)
{
    fd_close_all(s->procs, CG_CONTROLLER_COUNT);
    fd_close_all(s->usage, CG_USAGE_COUNT);
}

bool cgroup_slot_remove(const struct cgroups *c, unsigned index)
{
    bool gone = true;
    char name[16];

    (void)snprintf(name, sizeof name, "s%u", index);
    for (size_t k = 0; k < CG_CONTROLLER_COUNT; k++)
        if (c->dir[k] >= 0 && unlinkat(c->dir[k], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            gone = false;
    return gone;
}

bool cgroup_slot_is_gone(const struct cgroups *c, unsigned index)
{
    char name[16];

    (void)snprintf(name, sizeof name, "s%u", index);
    for (size_t k = 0; k < CG_CONTROLLER_COUNT; k++)
        if (c->dir[k] >= 0 && faccessat(c->dir[k], name, F_OK, 0) == 0)
            return false;
    return true;
}

/* What the kernel itself allocated for the group and can free. */
static uint64_t kernel_memory(const struct cgroups *c, int slot_dir)
{
    static const char key[] = "slab_reclaimable ";
    cleanup_close int fd = -1;
    char text[4096] = "";
    const char *at;

    if (c->version == 1)
        return read_number(slot_dir, "memory.kmem.usage_in_bytes");
    fd = openat(slot_dir, "memory.stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        return 0;
    at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

bool cgroup_slot_reclaim(const struct cgroups *c, unsigned index)
{
    cleanup_close int d = -1;
    char path[32];

    (void)snprintf(path, sizeof path, "s%u/pids.current", index);
    if (read_number(dir_of(c, CG_PIDS), path) > 0)
        return false;
    (void)snprintf(path, sizeof path, "s%u", index);
    d = openat(dir_of(c, CG_MEMORY), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d < 0 || kernel_memory(c, d) < RECLAIM_MIN)
        return true;
    if (c->version == 1)
        (void)write_at(d, "memory.force_empty", "0");
    else /* KERNEL 5.19: not there before */
        (void)write_number(d, "memory.reclaim", read_number(d, "memory.current"));
    return true;
}

/*
 * Version 1 charges buffers of TCP and UDP sockets only where they have a limit of their own, and
 * then to a counter beside that of the memory. Version 2 charges them as memory.
 */
static int limit_sockets(int slot_dir, uint64_t old, uint64_t now)
{
    uint64_t before = old < SOCKETS_MAX ? old : SOCKETS_MAX;
    uint64_t limit = now < SOCKETS_MAX ? now : SOCKETS_MAX;

    return limit == before ? 0 : write_number(slot_dir, "memory.kmem.tcp.limit_in_bytes", limit);
}

/* Swap would let a sandbox have more than its share; the order matters when a limit grows. */
static int limit_memory(const struct cgroups *c, unsigned slot, uint64_t old, uint64_t now)
{
    static const char *const v1[] = {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"};
    char dir[16];
    cleanup_close int d = -1;
    int r = 0;

    (void)snprintf(dir, sizeof dir, "s%u", slot);
    d = openat(dir_of(c, CG_MEMORY), dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d < 0)
        return -errno;
    if (c->version == 2) {
        r = write_if_there(d, "memory.swap.max", 0);
        return r < 0 ? r : write_number(d, "memory.max", now);
    }
    for (size_t i = 0; i < 2 && r == 0; i++) {
        size_t k = now > old && old ? 1 - i : i;

        r = k == 0 ? write_number(d, v1[k], now) : write_if_there(d, v1[k], now);
    }
    return r < 0 ? r : limit_sockets(d, old, now);
}

int cgroup_slot_limit(const struct cgroups *c, struct cgroup_slot *s, uint64_t memory_max,
                      uint32_t pids_max, struct err *e)
{
    char path[32];
    int r = 0;

    if (!c->version)
        return 0;
    if (s->memory_max != memory_max) {
        r = limit_memory(c, s->index, s->memory_max, memory_max);
        if (r < 0)
            return err_sys(e, r, "memory limit of slot %u", s->index);
        s->memory_max = memory_max;
    }
    if (s->pids_max != pids_max) {
        (void)snprintf(path, sizeof path, "s%u/pids.max", s->index);
        /* the keeper and init are ours, not the tenant's */
        r = write_number(dir_of(c, CG_PIDS), path, (uint64_t)pids_max + 2);
        if (r < 0)
            return err_sys(e, r, "process limit of slot %u", s->index);
        s->pids_max = pids_max;
    }
    return 0;
}

/* Makes the peak forgotten. It then is what is charged now, and need not be looked up elsewhere.
 * KERNEL 6.12: before, version 2 does not forget. */
static uint64_t memory_now(const struct cgroups *c, const struct cgroup_slot *s)
{
    int peak = s->usage[CG_USED_MEMORY];
    char text[32] = "", path[64];

    if (peak >= 0 && pwrite(peak, "0", 1, 0) == 1 && pread(peak, text, sizeof text - 1, 0) > 0)
        return strtoull(text, NULL, 10);
    (void)snprintf(path, sizeof path, "s%u/%s", s->index,
                   c->version == 2 ? "memory.current" : "memory.usage_in_bytes");
    return read_number(dir_of(c, CG_MEMORY), path);
}

bool cgroup_slot_clean(const struct cgroups *c, struct cgroup_slot *s)
{
    uint64_t now;

    if (!c->version)
        return true;
    now = memory_now(c, s);
    if (!s->baseline)
        s->baseline = now < BASELINE_MAX ? now : BASELINE_MAX;
    return now <= s->baseline + RESIDUE_MAX;
}

int cgroup_slot_freeze(const struct cgroups *c, unsigned index, bool frozen)
{
    char path[64];

    if (!c->version || dir_of(c, CG_FREEZER) < 0)
        return -ENOTSUP;
    (void)snprintf(path, sizeof path, "s%u/%s", index,
                   c->version == 2 ? "cgroup.freeze" : "freezer.state");
    if (c->version == 2)
        return write_at(dir_of(c, CG_FREEZER), path, frozen ? "1" : "0");
    return write_at(dir_of(c, CG_FREEZER), path, frozen ? "FROZEN" : "THAWED");
}

void cgroups_thaw(const struct cgroups *c)
{
    cleanup_close int again = -1;
    cleanup_with(closedirp) DIR *d = NULL;

    if (c->version != 1 || c->dir[CG_FREEZER] < 0)
        return;
    again = openat(c->dir[CG_FREEZER], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d = again >= 0 ? fdopendir(again) : NULL;
    if (!d)
        return;
    (void)take_fd(&again); /* closedir() closes it */
    for (struct dirent *at; (at = readdir(d));)
        if (at->d_type == DT_DIR && at->d_name[0] == 's')
            (void)!cgroup_slot_freeze(c, (unsigned)strtoul(at->d_name + 1, NULL, 10), false);
}

int cgroup_enter(const int procs[CG_CONTROLLER_COUNT])
{
    for (size_t k = 0; k < CG_CONTROLLER_COUNT; k++)
        if (procs[k] >= 0 && write(procs[k], "0", 1) < 0)
            return -errno;
    return 0;
}
