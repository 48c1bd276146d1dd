/* SPDX-License-Identifier: MIT */
#include "store/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { NAME_ROOM = 256, CHUNK = 256 * 1024 };

bool tree_path_is_safe(const char *path)
{
    int depth = 0;

    for (const char *p = path;;) {
        size_t n = strcspn(p, "/");

        if (n == 0 || n >= NAME_ROOM || (n == 1 && p[0] == '.') ||
            (n == 2 && p[0] == '.' && p[1] == '.') || ++depth > TREE_DEPTH_MAX)
            return false;
        if (!p[n])
            return true;
        p += n + 1;
    }
}

static int open_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* The directory a file goes to; *ret_name is what is left of the path. */
static int enter_parents(int root, const char *path, const char **ret_name)
{
    cleanup_close int at = fd_dup(root);
    const char *slash;

    while (at >= 0 && (slash = strchr(path, '/'))) {
        char part[NAME_ROOM];
        int next;

        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = '\0';
        next = mkdirat(at, part, 0755) == 0 ? fchmodat(at, part, 0755, 0)
               : errno != EEXIST            ? -1
                                            : 0;
        if (next < 0) /* the mode is not left to our own mask */
            return -errno;
        next = open_dir(at, part);
        if (next < 0)
            return next;
        (void)close(at);
        at = next;
        path = slash + 1;
    }
    *ret_name = path;
    return take_fd(&at);
}

static int copy(int from, int to, uint64_t size)
{
    cleanup_free char *chunk = malloc(CHUNK);
    uint64_t at = 0;

    while (chunk && at < size) {
        size_t want = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        ssize_t n = pread(from, chunk, want, (off_t)at);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        r = fd_write_all(to, chunk, (size_t)n);
        if (r < 0)
            return r;
        at += (uint64_t)n;
    }
    return chunk ? 0 : -ENOMEM;
}

int tree_add(int root, const char *path, const struct tree_file *f)
{
    const struct timespec times[2] = {f->mtime, f->mtime};
    cleanup_close int dir = -1, to = -1;
    const char *name = path;
    int r;

    if (!tree_path_is_safe(path))
        return -EINVAL;
    dir = enter_parents(root, path, &name);
    if (dir < 0)
        return dir;
    to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, f->mode);
    if (to < 0)
        return -errno;
    r = copy(f->fd, to, f->size);
    if (r == 0 && fchmod(to, f->mode) < 0) /* whatever our own mask is */
        r = -errno;
    if (r == 0 && futimens(to, times) < 0)
        r = -errno;
    return r;
}

/* ---- removing ---- */

static int remove_below(int at, const char *name, int depth);

static int empty(int dir, int depth)
{
    int again = fd_dup(dir), r = 0;
    DIR *d = again >= 0 ? fdopendir(again) : NULL;

    if (!d) {
        closep(&again);
        return -EMFILE;
    }
    for (const struct dirent *e; r == 0 && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = remove_below(dir, e->d_name, depth + 1);
    (void)closedir(d);
    return r;
}

static int remove_below(int at, const char *name, int depth)
{
    cleanup_close int dir = -1;
    int r;

    if (unlinkat(at, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    dir = open_dir(at, name);
    if (dir < 0)
        return dir;
    r = depth > TREE_DEPTH_MAX ? -ELOOP : empty(dir, depth);
    if (r < 0)
        return r;
    return unlinkat(at, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int tree_remove(int at, const char *name)
{
    return remove_below(at, name, 0);
}
