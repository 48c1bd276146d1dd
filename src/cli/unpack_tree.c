/* SPDX-License-Identifier: MIT */
#include "cli/unpack_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tar.h"

enum { DEPTH_MAX = 128 };

struct unpack_tree {
    struct tar_reader reader;
    int root; /* owned */
    int fd;   /* owned; the file under way, or -1 */
    mode_t mode;
    struct timespec mtime;
    struct err e;
};

static int fail(struct unpack_tree *u, int error, const char *name)
{
    if (u->e.kind == ERR_NONE)
        (void)err_sys(&u->e, -error, "%s", name);
    return -1;
}

/* The directory that a name lies in, made where it is missing; no link on the way. *ret_last: the
 * name there. -errno */
static int open_parent(int root, const char *name, const char **ret_last)
{
    int at = fd_dup(root);
    const char *slash;

    *ret_last = name;
    while (at >= 0 && (slash = strchr(name, '/'))) {
        cleanup_free char *part = strndup(name, (size_t)(slash - name));
        int below;

        if (!part || (mkdirat(at, part, 0777) < 0 && errno != EEXIST)) {
            (void)close(at);
            return part ? -errno : -ENOMEM;
        }
        below = openat(at, part, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
        (void)close(at);
        at = below < 0 ? -errno : below;
        *ret_last = name = slash + 1;
    }
    return at;
}

static int make_link(struct unpack_tree *u, int dir, const char *last, const struct tar_entry *t)
{
    const char *other_last;
    cleanup_close int other = -1;

    (void)unlinkat(dir, last, 0);
    if (t->kind == TAR_SYMLINK)
        return symlinkat(t->link, dir, last) < 0 ? -errno : 0;
    other = open_parent(u->root, t->link, &other_last);
    if (other < 0)
        return other;
    return linkat(other, other_last, dir, last, 0) < 0 ? -errno : 0;
}

static int make_file(struct unpack_tree *u, int dir, const char *last, const struct tar_entry *t)
{
    struct stat st;

    /* never through a name that is there: it could be a link, or have other names */
    if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        (void)unlinkat(dir, last, 0);
    u->fd = openat(dir, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (u->fd < 0)
        return -errno;
    u->mode = t->mode & 0777;
    u->mtime = (struct timespec){.tv_sec = (time_t)t->mtime_s, .tv_nsec = t->mtime_ns};
    return 0;
}

static int on_entry(void *user, const struct tar_entry *t)
{
    struct unpack_tree *u = user;
    const char *last;
    cleanup_close int dir = -1;
    int r = 0;

    if (strcmp(t->name, ".") == 0)
        return 0;
    dir = open_parent(u->root, t->name, &last);
    if (dir < 0)
        return fail(u, -dir, t->name);
    if (t->kind == TAR_DIRECTORY)
        r = mkdirat(dir, last, 0700 | (t->mode & 0777)) < 0 && errno != EEXIST ? -errno : 0;
    else if (t->kind == TAR_FILE)
        r = make_file(u, dir, last, t);
    else
        r = make_link(u, dir, last, t);
    return r < 0 ? fail(u, -r, t->name) : 0;
}

static int on_data(void *user, const char *p, size_t n)
{
    struct unpack_tree *u = user;
    int r = fd_write_all(u->fd, p, n);

    return r < 0 ? fail(u, -r, u->reader.name) : 0;
}

static int on_entry_end(void *user)
{
    struct unpack_tree *u = user;
    int fd = take_fd(&u->fd);
    int error = 0;

    if (fchmod(fd, u->mode) < 0 ||
        futimens(fd, (struct timespec[]){{.tv_nsec = UTIME_OMIT}, u->mtime}) < 0)
        error = errno;
    if (close(fd) < 0)
        error = errno;
    return error ? fail(u, error, u->reader.name) : 0;
}

int unpack_open(const char *directory, struct unpack_tree **ret, struct err *e)
{
    static const struct tar_limits limits = {UINT64_MAX, UINT64_MAX, DEPTH_MAX};
    struct unpack_tree *u = calloc(1, sizeof *u);
    struct tar_sink sink = {on_entry, on_data, on_entry_end, u};

    if (!u)
        return err_set(e, ERR_HOST, "no memory");
    u->fd = -1;
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        u->root = -1;
    else
        u->root = open(directory, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (u->root < 0) {
        free(u);
        return err_sys(e, -errno, "%s", directory);
    }
    tar_open(&u->reader, &limits, &sink);
    *ret = u;
    return 0;
}

void unpack_close(struct unpack_tree *u)
{
    if (!u)
        return;
    tar_close(&u->reader);
    closep(&u->fd);
    closep(&u->root);
    free(u);
}

static int say_fault(struct unpack_tree *u)
{
    if (u->e.kind == ERR_NONE)
        (void)err_set(&u->e, ERR_HOST, "%s: %s", u->reader.name, tar_fault_words(u->reader.fault));
    return -1;
}

int unpack_feed(struct unpack_tree *u, const char *p, size_t n)
{
    return tar_feed(&u->reader, p, n) < 0 ? say_fault(u) : 0;
}

int unpack_finish(struct unpack_tree *u)
{
    return tar_finish(&u->reader) < 0 ? say_fault(u) : 0;
}

const struct err *unpack_error(const struct unpack_tree *u)
{
    return &u->e;
}
