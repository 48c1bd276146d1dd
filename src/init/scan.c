/* SPDX-License-Identifier: MIT */
#include "init/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/os.h"
#include "init/entries.h"
#include "wire/wire.h"

enum { CLOCK_SLACK_US = 10000 }; /* two clocks cannot be read at once */

struct scan {
    int root, ctl;
    bool all; /* hidden files, too */
    struct timespec born;
    const struct scan_dirs *dirs;
    struct scan_dirs *note; /* not NULL: nothing is sent, directories are noted */
    bool moved;             /* what is being looked at was somewhere else */
    int64_t left_out;
    uint32_t sent;
    size_t n; /* bytes of the path so far */
    struct {
        struct init_msg m;
        char path[INIT_NAME_MAX];
    } out;
};

static int reopen(int dir)
{
    return openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int64_t scan_entries(int dir)
{
    return entries_count(dir);
}

/* Is it there, and we could not read it? A link that leads nowhere, or out, is not a file. */
static bool is_lost(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

static bool is_older(const struct scan *s, const struct stat *st)
{
    const struct timespec changed = st->st_ctim;

    return changed.tv_sec < s->born.tv_sec ||
           (changed.tv_sec == s->born.tv_sec && changed.tv_nsec < s->born.tv_nsec);
}

/* Lent, and as it was: to open it would be to open the host's. */
static bool is_untouched(const struct scan *s, int dir, const char *name)
{
    struct stat st;

    return s->born.tv_sec > 0 && !s->moved && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && is_older(s, &st);
}

static void send_untouched(struct scan *s)
{
    s->out.m = (struct init_msg){.verb = INIT_ENTRY, .arg = 1, .name_n = (uint32_t)s->n};
    if (fd_send(s->ctl, &s->out, sizeof s->out.m + s->n, NULL, 0) < 0)
        _exit(0);
}

/* Opened beneath the root, so that a link counts only if it stays inside. Never blocks: a FIFO
 * opens at once with O_NONBLOCK and is then refused. */
static void send_file(struct scan *s)
{
    cleanup_close int fd = -1;
    struct timespec changed;
    struct stat st;

    s->out.path[s->n] = '\0';
    fd = fd_open_beneath(s->root, s->out.path, O_RDONLY | O_NONBLOCK, 0, FD_LINKS_INSIDE);
    if (fd < 0 || fstat(fd, &st) < 0) {
        s->left_out += is_lost(fd < 0 ? -fd : EIO);
        return;
    }
    if (!S_ISREG(st.st_mode))
        return;
    if (s->sent++ >= SCAN_FILES_MAX) {
        s->left_out++;
        return;
    }
    changed = st.st_mtim;
    s->out.m = (struct init_msg){
        .verb = INIT_ENTRY,
        .size = st.st_size,
        .mtime_s = changed.tv_sec,
        .mtime_ns = changed.tv_nsec,
        .mode = st.st_mode & 07777,
        .name_n = (uint32_t)s->n,
    };
    if (fd_send(s->ctl, &s->out, sizeof s->out.m + s->n, &fd, 1) < 0)
        _exit(0);
}

/* ---- directories ---- */

static int by_inode(const void *x, const void *y)
{
    const struct scan_dir *a = x, *b = y;

    return a->inode != b->inode ? (a->inode > b->inode) - (a->inode < b->inode)
                                : (a->path > b->path) - (a->path < b->path);
}

static struct scan_dir dir_of(const struct scan *s, const struct stat *st)
{
    struct scan_dir d = {.inode = st->st_ino, .path = 0xcbf29ce484222325U};

    for (size_t i = 0; i < s->n; i++) /* FNV-1a */
        d.path = (d.path ^ (unsigned char)s->out.path[i]) * 0x100000001b3U;
    return d;
}

static void dir_note(struct scan *s, int dir)
{
    struct scan_dirs *all = s->note;
    struct stat st;

    if (all->n == all->cap) {
        size_t cap = all->cap ? 2 * all->cap : 64;
        struct scan_dir *more = realloc(all->v, cap * sizeof *more);

        if (!more)
            return;
        all->v = more;
        all->cap = cap;
    }
    if (fstat(dir, &st) == 0)
        all->v[all->n++] = dir_of(s, &st);
}

/* One that was moved has a new time itself; what is below it has not. */
static bool dir_is_moved(const struct scan *s, int dir)
{
    struct scan_dir d;
    struct stat st;

    if (s->moved || fstat(dir, &st) < 0)
        return true;
    if (is_older(s, &st))
        return false;
    d = dir_of(s, &st);
    return !s->dirs || s->dirs->n == 0 || !bsearch(&d, s->dirs->v, s->dirs->n, sizeof d, by_inode);
}

/* ---- walking ---- */

static void walk(struct scan *s, int dir, int depth);

static void enter(struct scan *s, int dir, int depth)
{
    bool before = s->moved;

    if (s->note)
        dir_note(s, dir);
    else if (s->born.tv_sec > 0)
        s->moved = dir_is_moved(s, dir);
    walk(s, dir, depth);
    s->moved = before;
}

static void visit(struct scan *s, int dir, const struct dirent *at, int depth)
{
    size_t before = s->n, len = strlen(at->d_name);

    if (before + len + 2 > sizeof s->out.path) {
        s->left_out++;
        return;
    }
    memcpy(s->out.path + before, at->d_name, len);
    s->n = before + len;
    if (at->d_type == DT_DIR) {
        int sub = openat(dir, at->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        s->out.path[s->n++] = '/';
        if (sub < 0 || depth == SCAN_DEPTH_MAX)
            s->left_out++;
        else
            enter(s, sub, depth + 1);
        closep(&sub);
    } else if (s->note) {
        /* directories alone */
    } else if (at->d_type == DT_REG && is_untouched(s, dir, at->d_name)) {
        send_untouched(s);
    } else if (at->d_type == DT_REG || at->d_type == DT_LNK) {
        send_file(s);
    }
    s->n = before;
}

static void walk(struct scan *s, int dir, int depth)
{
    int own = reopen(dir);
    DIR *d = own >= 0 ? fdopendir(own) : NULL;

    if (!d) {
        closep(&own);
        s->left_out++;
        return;
    }
    errno = 0;
    for (struct dirent *at; (at = readdir(d)); errno = 0)
        if (at->d_name[0] != '.' ||
            (s->all && strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0))
            visit(s, dir, at, depth);
    s->left_out += errno != 0; /* at least one */
    (void)closedir(d);
}

void scan_note(int dir, struct scan_dirs *ret)
{
    struct scan s = {.root = dir, .ctl = -1, .all = true, .note = ret};

    *ret = (struct scan_dirs){0};
    walk(&s, dir, 0);
    if (ret->n > 1)
        qsort(ret->v, ret->n, sizeof *ret->v, by_inode);
}

struct scan_birth scan_birth_now(void)
{
    return (struct scan_birth){.at = os_file_clock(), .lead_us = clock_lead_us()};
}

/* Where the clock was set back since, what was changed may look older than what was lent: then
 * every file is sent, and the daemon compares. */
static struct timespec birth_of(const struct scan_birth *b)
{
    const struct timespec unknown = {0};

    return clock_lead_us() < b->lead_us - CLOCK_SLACK_US ? unknown : b->at;
}

void scan_workspace(const struct scan_order *o)
{
    struct scan s = {
        .root = o->dir, .ctl = o->ctl, .all = o->all, .born = birth_of(&o->born), .dirs = o->dirs};
    struct init_msg end = {.verb = INIT_SCANNED};

    walk(&s, o->dir, 0);
    end.arg = s.left_out;
    if (fd_send(o->ctl, &end, sizeof end, NULL, 0) < 0)
        _exit(0);
}
