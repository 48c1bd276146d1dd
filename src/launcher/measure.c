/* SPDX-License-Identifier: MIT */
#include "launcher/measure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"

enum {
    MEASURE_DEPTH_MAX = 200, /* each level holds two descriptors */
    MEASURE_S = 60,          /* then it is ended, and nothing is known */
    MEASURE_NICE = 10,
    BLOCK = 512, /* st_blocks counts these */
};

struct walk {
    uint64_t bytes_max, files_max;
    struct launch_measured *m;
};

static bool is_over(const struct walk *w)
{
    return (w->bytes_max && w->m->bytes > w->bytes_max) ||
           (w->files_max && w->m->files > w->files_max) || w->m->too_deep;
}

static void walk(struct walk *w, int dir, int depth);

/* A file with several names is counted in parts: all its names are in here. */
static void count(struct walk *w, int dir, const char *name, int depth)
{
    cleanup_close int sub = -1;
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    w->m->files++;
    if (!S_ISDIR(st.st_mode)) {
        w->m->bytes += (uint64_t)st.st_blocks * BLOCK / (st.st_nlink ? st.st_nlink : 1);
        return;
    }
    w->m->bytes += (uint64_t)st.st_blocks * BLOCK;
    if (depth == MEASURE_DEPTH_MAX) {
        w->m->too_deep = 1;
        return;
    }
    sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (sub >= 0)
        walk(w, sub, depth + 1);
    else if (errno != ENOENT && errno != ENOTDIR)
        w->m->error = errno; /* not everything was seen */
}

static void walk(struct walk *w, int dir, int depth)
{
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = own >= 0 ? fdopendir(own) : NULL;

    if (!d) {
        w->m->error = errno;
        closep(&own);
        return;
    }
    for (const struct dirent *at; !is_over(w) && (at = readdir(d));)
        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
            count(w, dir, at->d_name, depth);
    (void)closedir(d);
}

void measure_walk(int dir, uint64_t bytes_max, uint64_t files_max, struct launch_measured *ret)
{
    struct walk w = {.bytes_max = bytes_max, .files_max = files_max, .m = ret};
    struct statvfs v;

    if (fstatvfs(dir, &v) == 0) {
        ret->room = (uint64_t)v.f_bavail * v.f_frsize;
        ret->total = (uint64_t)v.f_blocks * v.f_frsize;
    }
    walk(&w, dir, 0);
}

/* In the child. A workspace that is not there has nothing in it. */
static void measure(const struct kept *k, const struct launch_msg *m, int out)
{
    struct launch_measured r = {0};
    cleanup_close int dir = kept_look(k, m->workspace, sizeof m->workspace);

    if (dir >= 0)
        measure_walk(dir, m->workspace_max, m->workspace_files, &r);
    else if (dir == -ENOENT)
        r.gone = 1;
    else
        r.error = -dir;
    (void)!fd_write_all(out, &r, sizeof r);
}

pid_t *measures_room(struct measures *all)
{
    for (size_t i = 0; i < MEASURES_MAX; i++)
        if (all->child[i] == 0)
            return &all->child[i];
    return NULL;
}

pid_t measures_fork(struct measures *all)
{
    pid_t *room = measures_room(all), pid = room ? fork() : -1;

    if (pid == 0)
        (void)!nice(MEASURE_NICE);
    if (pid > 0)
        *room = pid;
    return pid;
}

void measure_start(struct measures *all, const struct kept *k, const struct launch_msg *m, int out)
{
    struct launch_measured busy = {.error = EAGAIN};
    pid_t pid = measures_fork(all);

    if (pid == 0) {
        (void)alarm(MEASURE_S);
        measure(k, m, out);
        _exit(0);
    }
    if (pid < 0)
        (void)!fd_write_all(out, &busy, sizeof busy); /* less than a pipe holds: it never waits */
}

void measure_reaped(struct measures *all, pid_t pid)
{
    for (size_t i = 0; i < MEASURES_MAX; i++)
        if (all->child[i] == pid)
            all->child[i] = 0;
}
