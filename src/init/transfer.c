/* SPDX-License-Identifier: MIT */
#include "init/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/entries.h"
#include "init/entry.h"
#include "init/files.h"
#include "init/helper.h"
#include "init/remove.h"

enum {
    PART = 1 << 20,   /* copied at once */
    TRIES_MAX = 16,   /* hidden names that may be in the way */
    WORK_MODE = 0700, /* of a directory that is being copied */
    FIRST_MODE = 0600,
};

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

struct transfer {
    struct entry_list *list; /* for signs of life */
    const char *from, *to;
    bool replace;
    size_t depth;
    enum help_op op; /* where it failed */
};

static int rename_to(const struct transfer *t, const char *from)
{
    struct stat st;

    if (t->replace)
        return rename(from, t->to) < 0 ? -errno : 0;
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, t->to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EPERM)
        return -errno;
    /* EINVAL may mean that this file system cannot, or that it cannot be done. */
    if (lstat(t->to, &st) == 0)
        return -EEXIST;
    return rename(from, t->to) < 0 ? -errno : 0;
}

/* ---- copying ---- */

static int copy_bytes(struct transfer *t, int from, int to)
{
    char part[64 * 1024];
    ssize_t n = 0;

    for (;;) {
        n = copy_file_range(from, NULL, to, NULL, PART, 0);
        if (n <= 0)
            break;
        entry_tick(t->list);
    }
    if (n == 0 && lseek(from, 0, SEEK_CUR) > 0)
        return 0;
    /* It was not possible, or the kernel makes this file up and says that it is empty. */
    while ((n = read(from, part, sizeof part)) > 0) {
        int r = fd_write_all(to, part, (size_t)n);

        if (r < 0)
            return r;
        entry_tick(t->list);
    }
    return n < 0 ? -errno : 0;
}

static int finish(int fd, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};

    (void)!futimens(fd, times);
    return fchmod(fd, st->st_mode & 01777) < 0 ? -errno : 0;
}

static int copy_file(struct transfer *t, int dir, const char *name, int to_dir, const char *to)
{
    cleanup_close int in =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    cleanup_close int out = -1;
    struct stat st;
    int r;

    if (in < 0 || fstat(in, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    out = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FIRST_MODE);
    if (out < 0)
        return -errno;
    r = copy_bytes(t, in, out);
    return r < 0 ? r : finish(out, &st);
}

static int copy_link(int dir, const char *name, int to_dir, const char *to)
{
    char text[PATH_MAX];
    ssize_t n = readlinkat(dir, name, text, sizeof text - 1);

    if (n < 0)
        return -errno;
    text[n] = '\0';
    return symlinkat(text, to_dir, to) < 0 ? -errno : 0;
}

static int copy_any(struct transfer *t, int dir, const char *name, int to_dir, const char *to);

static int copy_directory(struct transfer *t, int dir, const char *name, int to_dir, const char *to)
{
    cleanup_close int in =
        openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    cleanup_close int out = -1;
    struct entries *all = NULL;
    const char *entry;
    struct stat st;
    int error = 0, r = 0;

    if (in < 0 || fstat(in, &st) < 0 || mkdirat(to_dir, to, WORK_MODE) < 0)
        return -errno;
    if (t->depth == TRANSFER_DEPTH_MAX)
        return -ELOOP;
    out = openat(to_dir, to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (out < 0)
        return -errno;
    all = calloc(1, sizeof *all);
    if (!all)
        return -ENOMEM;
    all->fd = in;
    t->depth++;
    while (r == 0 && (entry = entries_next(all, &error))) {
        char copy[NAME_MAX + 1];

        (void)snprintf(copy, sizeof copy, "%s", entry);
        r = copy_any(t, in, copy, out, copy);
        if (r == -ENOENT)
            r = 0; /* it vanished meanwhile */
    }
    t->depth--;
    free(all);
    return r < 0 ? r : error ? -error : finish(out, &st);
}

static int copy_any(struct transfer *t, int dir, const char *name, int to_dir, const char *to)
{
    struct stat st;

    entry_tick(t->list);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return copy_directory(t, dir, name, to_dir, to);
    if (S_ISLNK(st.st_mode))
        return copy_link(dir, name, to_dir, to);
    if (S_ISREG(st.st_mode))
        return copy_file(t, dir, name, to_dir, to);
    if (S_ISFIFO(st.st_mode))
        return mkfifoat(to_dir, to, st.st_mode & 0777) < 0 ? -errno : 0;
    return t->depth > 0 ? 0 : -EINVAL;
}

/* Is the destination below what is copied? It would be copied into itself. */
static bool is_inside(const char *from, const char *parent)
{
    char a[PATH_MAX], b[PATH_MAX];
    size_t n;

    if (!realpath(from, a) || !realpath(parent, b))
        return false;
    n = strlen(a);
    return strncmp(a, b, n) == 0 && (b[n] == '\0' || b[n] == '/' || n == 1);
}

/* The directory that a path is in. */
static int parent_of(const char *path, char out[PATH_MAX])
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n >= PATH_MAX)
        return -ENAMETOOLONG;
    (void)snprintf(out, PATH_MAX, "%.*s", n > 0 ? (int)n : 1, n > 0 ? path : ".");
    return 0;
}

static int hidden_name(const struct transfer *t, char out[PATH_MAX])
{
    char parent[PATH_MAX];
    struct stat st;
    int r = parent_of(t->to, parent);

    if (r < 0)
        return r;
    for (int i = 0; i < TRIES_MAX; i++) {
        int n = snprintf(out, PATH_MAX, "%s/.sandbox-copy-%ld-%d", parent, (long)getpid(), i);

        if (n >= PATH_MAX)
            return -ENAMETOOLONG;
        if (lstat(out, &st) < 0)
            return errno == ENOENT ? 0 : -errno;
    }
    return -EEXIST;
}

static int copy(struct transfer *t)
{
    char hidden[PATH_MAX], parent[PATH_MAX];
    char *failed = NULL;
    struct stat st;
    int r = parent_of(t->to, parent);

    t->op = HELP_OP_COPY;
    if (r == 0 && lstat(t->from, &st) < 0)
        r = -errno;
    if (r == 0 && S_ISDIR(st.st_mode) && is_inside(t->from, parent))
        r = -EINVAL;
    if (r == 0 && !t->replace && lstat(t->to, &st) == 0)
        r = -EEXIST;
    if (r == 0)
        r = hidden_name(t, hidden);
    if (r < 0)
        return r;
    r = copy_any(t, AT_FDCWD, t->from, AT_FDCWD, hidden);
    if (r == 0)
        r = rename_to(t, hidden);
    if (r < 0) {
        (void)!remove_all(hidden, &failed);
        free(failed);
    }
    return r;
}

/* ---- moving ---- */

static int move(struct transfer *t)
{
    char *failed = NULL;
    int r = rename_to(t, t->from);

    t->op = HELP_OP_RENAME;
    if (r != -EXDEV)
        return r;
    r = copy(t);
    if (r == 0)
        r = remove_all(t->from, &failed);
    free(failed);
    return r;
}

/* The parents of the destination, once it is known that there is something to put there. */
static int make_parents(struct transfer *t)
{
    char parent[PATH_MAX], failed[PATH_MAX];
    struct stat st;
    int r;

    t->op = HELP_OP_STAT;
    if (lstat(t->from, &st) < 0)
        return -errno;
    t->op = HELP_OP_MKDIR;
    r = parent_of(t->to, parent);
    return r < 0 ? r : files_make_directories(parent, failed);
}

void transfer_serve(int sock, const struct init_msg *m, const char *from, const char *to)
{
    struct transfer t = {.from = from, .to = to, .replace = m->arg != 0};
    int r;

    t.list = malloc(sizeof *t.list);
    if (!t.list) {
        helper_done(sock, ENOMEM, HELP_OP_COPY, from);
        return;
    }
    entry_list_init(t.list, sock, HELP_ENTRIES);
    r = !*to ? -ENOENT : make_parents(&t);
    if (r == 0)
        r = m->verb == HELP_MOVE ? move(&t) : copy(&t);
    free(t.list);
    if (r == 0)
        r = entry_tell(sock, to);
    helper_done(sock, -r, t.op, r ? (r == -EEXIST || r == -ENOTEMPTY ? to : from) : NULL);
}
