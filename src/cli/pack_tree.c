/* SPDX-License-Identifier: MIT */
#include "cli/pack_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tar.h"

enum { DEPTH_MAX = 128, HEAD_MAX = 256 << 10 };

struct pack_tree {
    DIR *dirs[DEPTH_MAX]; /* owned; each below the one before */
    size_t depth;
    size_t name_ends[DEPTH_MAX]; /* where the name of each ends in `name` */
    char name[TAR_NAME_MAX];     /* of the entry under way, relative to the top */
    struct buf ready;            /* owned; headers and padding that come next */
    int fd;                      /* of the file under way, or -1 */
    uint64_t left, size;
    bool ended;
    struct err e;
};

int pack_open(const char *directory, struct pack_tree **ret, struct err *e)
{
    struct pack_tree *p = calloc(1, sizeof *p);

    if (!p)
        return err_set(e, ERR_HOST, "no memory");
    p->fd = -1;
    p->ready = BUF_INIT(HEAD_MAX);
    p->dirs[0] = opendir(directory);
    if (!p->dirs[0]) {
        free(p);
        return err_sys(e, -errno, "%s", directory);
    }
    p->depth = 1;
    *ret = p;
    return 0;
}

void pack_close(struct pack_tree *p)
{
    if (!p)
        return;
    while (p->depth > 0)
        (void)closedir(p->dirs[--p->depth]);
    closep(&p->fd);
    buf_done(&p->ready);
    free(p);
}

const struct err *pack_error(const struct pack_tree *p)
{
    return &p->e;
}

static struct tar_entry entry_of(const struct pack_tree *p, const struct stat *st)
{
    return (struct tar_entry){
        .name = p->name, .link = "", .mode = st->st_mode & 07777, .mtime_s = st->st_mtim.tv_sec};
}

static int enter(struct pack_tree *p, int fd, const struct stat *st)
{
    struct tar_entry t = entry_of(p, st);

    if (p->depth == DEPTH_MAX || !(p->dirs[p->depth] = fdopendir(fd))) {
        (void)close(fd);
        return err_set(&p->e, ERR_CALLER, "%s: directories too deep", p->name);
    }
    t.kind = TAR_DIRECTORY;
    tar_put_header(&p->ready, &t);
    p->name_ends[p->depth] = strlen(p->name);
    p->depth++;
    return 0;
}

static int put_link(struct pack_tree *p, int dir, const char *name, const struct stat *st)
{
    struct tar_entry t = entry_of(p, st);
    char target[TAR_NAME_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);

    if (n < 0)
        return err_sys(&p->e, -errno, "%s", p->name);
    target[n] = '\0';
    t.kind = TAR_SYMLINK;
    t.link = target;
    tar_put_header(&p->ready, &t);
    return 0;
}

/* The file that was opened is the one that counts, whatever its name is by now. */
static int open_entry(struct pack_tree *p, int dir, const char *name)
{
    struct tar_entry t;
    struct stat st;
    int fd;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(&p->e, -errno, "%s", p->name);
    if (S_ISLNK(st.st_mode))
        return put_link(p, dir, name, &st);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return 0;
    fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0) {
        closep(&fd);
        return err_sys(&p->e, -errno, "%s", p->name);
    }
    if (S_ISDIR(st.st_mode))
        return enter(p, fd, &st);
    t = entry_of(p, &st);
    t.kind = TAR_FILE;
    t.size = p->left = p->size = (uint64_t)st.st_size;
    tar_put_header(&p->ready, &t);
    p->fd = fd;
    return 0;
}

/* The next entry, or the end of a directory or of all. */
static int step(struct pack_tree *p)
{
    DIR *at = p->dirs[p->depth - 1];
    size_t base = p->depth > 1 ? p->name_ends[p->depth - 1] : 0;
    struct dirent *d = readdir(at);
    static const char end[TAR_END_SIZE];

    if (!d) {
        (void)closedir(at);
        if (--p->depth == 0) {
            p->ended = true;
            return buf_put(&p->ready, end, sizeof end);
        }
        return 0;
    }
    if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
        return 0;
    if (base + strlen(d->d_name) + 2 > sizeof p->name)
        return err_set(&p->e, ERR_CALLER, "%s: a name is too long", d->d_name);
    (void)snprintf(p->name + base, sizeof p->name - base, "%s%s", base ? "/" : "", d->d_name);
    return open_entry(p, dirfd(at), d->d_name);
}

static void end_file(struct pack_tree *p)
{
    static const char zeros[TAR_BLOCK];

    closep(&p->fd);
    p->fd = -1;
    (void)buf_put(&p->ready, zeros, tar_padding(p->size));
}

/* What a file lost since its header was written is filled up with zeros. */
static ssize_t read_file(struct pack_tree *p, char *out, size_t room)
{
    size_t most = p->left < room ? (size_t)p->left : room;
    ssize_t n = read(p->fd, out, most);

    if (n < 0)
        return err_sys(&p->e, -errno, "%s", p->name);
    if (n == 0) {
        memset(out, 0, most);
        n = (ssize_t)most;
    }
    p->left -= (uint64_t)n;
    return n;
}

ssize_t pack_read(struct pack_tree *p, char *out, size_t room)
{
    size_t n;

    while (p->ready.n == 0) {
        if (p->fd >= 0 && p->left > 0)
            return read_file(p, out, room);
        if (p->fd >= 0)
            end_file(p);
        else if (p->ended)
            return 0;
        else if (step(p) < 0)
            return -1;
    }
    n = p->ready.n < room ? p->ready.n : room;
    memcpy(out, p->ready.p, n);
    buf_consume(&p->ready, n);
    return (ssize_t)n;
}
