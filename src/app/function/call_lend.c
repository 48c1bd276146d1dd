/* SPDX-License-Identifier: MIT */
/*
 * Files that are lent: looked at, not opened. The list of them goes to the keeper of the sandbox
 * (launcher/lazy.h); what overlays cannot show is copied instead.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/function/call_walk.h"
#include "base/fd.h"
#include "base/os.h"

enum {
    SAME_PART = 64 * 1024,
    SAME_MAX = 256 << 20, /* bytes that are compared; a larger file that was touched has changed */
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_HOST, "out of memory");
}

/* ---- looking ---- */

static int unfit(struct walk *w, const char *why)
{
    w->unfit = why;
    return err_set(w->e, ERR_HOST, "%s", why);
}

/* One overlay cannot be mounted in another without changing it. */
static bool is_nested(const struct walk *w)
{
    const struct mount *m = &w->tree->mount;
    size_t n = strlen(w->dir->inside);

    for (size_t i = 0; i < m->n; i++)
        if (&m->dir[i] != w->dir && strncmp(m->dir[i].inside, w->dir->inside, n) == 0 &&
            (m->dir[i].inside[n] == '/' || !m->dir[i].inside[n]))
            return true;
    return false;
}

/* It is not part of what is written to the workspace, which the stubs are. */
static bool is_temporary(const char *path)
{
    return strncmp(path, "/tmp", 4) == 0 && (path[4] == '/' || !path[4]);
}

int walk_begin(struct walk *w)
{
    struct stat st;

    if (is_temporary(w->dir->inside))
        return unfit(w, "a mount is below /tmp");
    if (is_nested(w))
        return unfit(w, "a mount is inside another");
    if (fstat(w->root, &st) < 0 || !os_can_be_lent(w->root))
        return unfit(w, "the directory is on a file system that cannot be shared");
    w->dev = st.st_dev;
    return 0;
}

int walk_enter(struct walk *w, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || st.st_dev != w->dev)
        return unfit(w, "another file system is mounted below the directory");
    if (w->tree->made_n + w->request->attached.n - w->given_n > TREE_LENT_MAX)
        return err_set(w->e, ERR_CALLER, "options.mount: more than %d files and directories",
                       TREE_LENT_MAX);
    return 0;
}

/* Where a file was given, too, the mount's counts, as it does when they are written in order. */
static void drop_given(struct walk *w)
{
    struct call_request *r = w->request;

    for (size_t i = 0; i < w->given_n; i++) {
        if (strcmp(r->attached.files[i].path, w->path.p) != 0)
            continue;
        memmove(&r->attached.files[i], &r->attached.files[i + 1],
                (r->attached.n - i - 1) * sizeof r->attached.files[i]);
        w->given_n--;
        r->attached.n--;
        return;
    }
}

static int lend_file(struct walk *w, uint64_t size)
{
    struct call_tree *t = w->tree;
    char *path = strdup(w->path.p);

    if (walk_keep(&t->owned, &t->owned_n, path, w->e) < 0)
        return -1;
    w->total += size;
    drop_given(w);
    return walk_add(
        w, &(struct call_file){.path = path, .unread = true, .host = path + w->base, .size = size});
}

int walk_lend(struct walk *w)
{
    bool readable;
    struct stat st;

    if (os_look_beneath(w->root, w->path.p + w->base, &st, &readable) < 0 || !S_ISREG(st.st_mode) ||
        !readable || !walk_takes(w, (uint64_t)st.st_size))
        return 0;
    return lend_file(w, (uint64_t)st.st_size);
}

/* ---- the list ---- */

static void put_row(struct buf *out, const struct lazy_row *row, const char *path, const char *host)
{
    struct lazy_row r = *row;

    r.path_n = (uint32_t)strlen(path);
    r.host_n = (uint32_t)strlen(host) + (*host != '\0');
    (void)buf_put(out, &r, sizeof r);
    (void)buf_put(out, path, r.path_n + 1);
    if (*host)
        (void)buf_putc(out, '/');
    (void)buf_put(out, host, strlen(host) + 1);
}

/* Parents come before what is in them, as the walk has met them. */
static void put_dirs(struct buf *out, const struct call_tree *t, const struct mount_dir *d)
{
    size_t base = strlen(d->inside) + 1;

    for (size_t i = 0; i < t->made_n; i++) {
        cleanup_free char *path = strdup(t->made[i]);
        size_t n = path ? strlen(path) : 0;

        if (!path)
            out->failed = true;
        if (n <= base || mount_of(&t->mount, path) != d)
            continue;
        path[n - 1] = '\0';
        put_row(out, &(struct lazy_row){.kind = LAZY_DIR}, path + base, "");
    }
}

static void put_files(struct buf *out, const struct call_tree *t, const struct mount_dir *d,
                      const struct call_request *r, const struct call_rights *rights)
{
    size_t base = strlen(d->inside) + 1;

    for (size_t i = 0; i < r->attached.n; i++) {
        const struct call_file *f = &r->attached.files[i];
        struct lazy_row row = {
            .kind = LAZY_FILE, .size = f->size, .mode = rights && !rights->files[i] ? 0444 : 0644};

        if (f->host && mount_of(&t->mount, f->path) == d)
            put_row(out, &row, f->path + base, f->host);
    }
}

static void put_all(struct buf *out, struct call_tree *t, const struct call_request *r,
                    const struct call_rights *rights)
{
    for (size_t i = 0; i < t->mount.n; i++) {
        const struct mount_dir *d = &t->mount.dir[i];

        t->lazy.dirs[i] = t->fd[i];
        put_row(out, &(struct lazy_row){.kind = LAZY_MOUNT}, d->inside + 1, "");
        put_dirs(out, t, d);
        put_files(out, t, d, r, rights);
    }
}

int call_tree_lend(struct call_tree *t, const struct call_request *r,
                   const struct call_rights *rights, const struct plan_lazy **ret, struct err *e)
{
    cleanup_with(buf_done) struct buf rows = BUF_INIT(LAZY_LIST_MAX);
    int error;

    _Static_assert((int)MOUNT_DIRS_MAX <= (int)PLAN_LAZY_MAX, "all mounts of a call");
    *ret = NULL;
    if (!t->lent)
        return 0;
    put_all(&rows, t, r, rights);
    if (rows.failed)
        return no_memory(e);
    fd_close_all(&t->lazy.list, 1);
    t->lazy.list = os_memory_file("lent");
    if (t->lazy.list < 0)
        return err_sys(e, -errno, "list of lent files");
    error = fd_write_all(t->lazy.list, rows.p, rows.n);
    if (error < 0)
        return err_sys(e, error, "list of lent files");
    t->lazy.n = t->mount.n;
    t->lazy.rows = t->made_n + r->attached.n;
    *ret = &t->lazy;
    return 0;
}

/* ---- afterwards ---- */

static bool same_bytes(int a, int b, uint64_t size)
{
    cleanup_free char *x = malloc(SAME_PART), *y = malloc(SAME_PART);

    if (!x || !y)
        return false;
    for (uint64_t at = 0; at < size;) {
        size_t n = size - at < SAME_PART ? (size_t)(size - at) : SAME_PART;

        if (pread(a, x, n, (off_t)at) != (ssize_t)n || pread(b, y, n, (off_t)at) != (ssize_t)n ||
            memcmp(x, y, n) != 0)
            return false;
        at += n;
    }
    return true;
}

/* What the host has in the place of a lent file; -1: nothing of the kind any more. */
static int host_open(const struct call_tree *t, const struct call_file *f, uint64_t size)
{
    const struct mount_dir *d = f->host ? mount_of(&t->mount, f->path) : NULL;
    cleanup_close int fd = -1;
    struct stat st;

    if (!d)
        return -1;
    fd =
        fd_open_beneath(t->fd[d - t->mount.dir], f->host, O_RDONLY | O_NONBLOCK, 0, FD_LINKS_NEVER);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
        return -1;
    return take_fd(&fd);
}

bool call_tree_same(const struct call_tree *t, const struct call_file *old, int fd, uint64_t size)
{
    cleanup_close int host = size <= SAME_MAX ? host_open(t, old, size) : -1;

    return host >= 0 && same_bytes(host, fd, size);
}

static void recall(struct call_tree *t, struct call_file *f)
{
    cleanup_close int fd = host_open(t, f, f->size);
    char *content = fd < 0 ? NULL : malloc(f->size + 1);
    struct err ignored;

    if (!content)
        return;
    if (fd_read_full(fd, content, f->size) != (ssize_t)f->size) {
        free(content);
        return;
    }
    content[f->size] = '\0';
    if (walk_keep(&t->owned, &t->owned_n, content, &ignored) < 0)
        return;
    f->content = (struct bytes){content, f->size};
    f->unread = false;
}

void call_tree_recall(struct call_tree *t, struct call_request *r, const struct changes *all)
{
    uint64_t left = CHANGES_CONTENT_MAX;

    for (size_t i = 0; i < all->n; i++) {
        const struct call_file *old = all->v[i].before;

        if (!old || !old->host || !old->unread || old->size > left)
            continue;
        left -= old->size;
        recall(t, &r->attached.files[old - r->attached.files]);
    }
}
