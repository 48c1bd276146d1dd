/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "selftest/hold.h"

enum { KIB = 1024, MS_PER_S = 1000 };
enum { STAT_UTIME = 11, STAT_CSTIME = 14, STAT_THREADS = 17 };
/* In tenths of the limit. Attacks take three times as much; counting is no single moment, and a
 * process that died in between was counted beside what grew in its place. Time is the kernel's own
 * account. */
enum { OVER = 20, OVER_TIME = 13, TENTHS = 10 };

static uint64_t in_kib(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) * KIB : 0;
}

/* Descriptors, and memory in files that have no name. */
static void count_descriptors(long pid, struct hold_count *c)
{
    char path[64];
    DIR *d;

    (void)snprintf(path, sizeof path, "/proc/%ld/fd", pid);
    d = opendir(path);
    for (struct dirent *at; d && (at = readdir(d));) {
        struct stat st;

        if (at->d_name[0] == '.')
            continue;
        c->open++;
        if (fstatat(dirfd(d), at->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0)
            c->memory += (uint64_t)st.st_blocks * 512;
    }
    if (d)
        (void)closedir(d);
}

/* Bytes that wait in the sockets of one table of a network namespace: "tx_queue:rx_queue". */
static uint64_t count_queues(long pid, const char *table)
{
    char path[64], line[512];
    unsigned long long sent, received;
    uint64_t sum = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%ld/net/%s", pid, table);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%*s %*s %*s %*s %llx:%llx", &sent, &received) == 2)
            sum += sent + received;
    if (f)
        (void)fclose(f);
    return sum;
}

/* Its network is one for all of its processes: not a sum over them. */
static void count_network(long pid, struct hold_count *c)
{
    static const char *const tables[] = {"tcp", "tcp6", "udp", "udp6"};
    uint64_t sum = 0;

    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        sum += count_queues(pid, tables[i]);
    c->queues = sum > c->queues ? sum : c->queues;
}

static void count_place(long pid, const char *place, uint64_t *bytes, uint64_t *files)
{
    char path[64];
    struct statvfs v;

    (void)snprintf(path, sizeof path, "/proc/%ld/%s", pid, place);
    if (statvfs(path, &v) < 0)
        return;
    *bytes = (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
    if (files)
        *files = v.f_files - v.f_ffree;
}

/* A page that several have is everybody's in parts: what is forked from each other shares much. */
void hold_count_add(const struct hold *h, long pid, struct hold_count *c)
{
    char text[HOLD_TEXT];

    c->processes++;
    c->tasks += (uint64_t)hold_stat(pid, STAT_THREADS);
    for (int i = STAT_UTIME; i <= STAT_CSTIME; i++)
        c->cpu_ms += (uint64_t)hold_stat(pid, i) * MS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    if (h->eye == EYE_MEMORY) {
        (void)hold_read(pid, "smaps_rollup", text);
        c->memory += in_kib(text, "Pss_Anon:") + in_kib(text, "Pss_Shmem:");
    }
    if (h->eye == EYE_MEMORY || h->eye == EYE_OPEN)
        count_descriptors(pid, c);
    if (h->eye == EYE_QUEUES)
        count_network(pid, c);
    count_place(pid, "cwd", &c->disk, &c->files);
    count_place(pid, "root/tmp", &c->tmp, NULL);
    count_place(pid, "root/dev/shm", &c->shm, NULL);
}

bool hold_count_is_over(const struct hold *h, const struct hold_count *c, char *out, size_t max)
{
    const struct limits *l = h->limits;
    const struct {
        uint64_t have, limit;
        const char *unit;
    } counts[EYE_COUNT] = {
        [EYE_MEMORY] = {c->memory, l->memory_max,      "bytes of memory"        },
        [EYE_QUEUES] = {c->queues, l->memory_max,      "bytes in sockets"       },
        [EYE_DISK] = {c->disk,   l->workspace_max,   "bytes in the workspace" },
        [EYE_TMP] = {c->tmp,    l->tmp_max,         "bytes in /tmp"          },
        [EYE_SHM] = {c->shm,    l->tmp_max,         "bytes in /dev/shm"      },
        [EYE_FILES] = {c->files,  l->workspace_files, "files"                  },
        [EYE_TASKS] = {c->tasks,  l->pids_max,        "tasks"                  },
        [EYE_OPEN] = {c->open,   l->files_max,       "descriptors"            },
        [EYE_TIME] = {c->cpu_ms, l->cpu_ms,          "ms of processor time"   },
        [EYE_ALIVE] = {h->age_ms, l->wall_ms,         "ms, and it is there yet"},
    };
    uint64_t have = counts[h->eye].have;
    uint64_t most = counts[h->eye].limit * (h->eye == EYE_TIME ? OVER_TIME : OVER) / TENTHS;

    if (!counts[h->eye].unit || c->processes == 0 || have <= most)
        return false;
    (void)snprintf(out, max, "counted outside: %llu %s", (unsigned long long)have,
                   counts[h->eye].unit);
    return true;
}
