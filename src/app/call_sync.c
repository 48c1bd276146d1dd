/* SPDX-License-Identifier: MIT */
/*
 * Changes go back to the host, one file after another: created, then modified, then deleted. A file
 * is written beside its place and put there in one step. When something fails, the request says
 * whether to go on, to stop, or to undo everything, deletions included.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/call_mount.h"
#include "base/fd.h"
#include "base/jw.h"
#include "base/random.h"
#include "call/glob.h"

enum { TEMP_RANDOM = 12, TEMP_MAX = 40, REPORT_ROW = 512 };

struct sync_list {
    const struct change **v; /* owned array of borrowed ones */
    size_t n;
};

struct sync {
    struct call_tree *tree;
    struct sync_list done;
    struct buf failed, skipped, events; /* JSON rows */
    bool stopped, rolled_back;
};

/* ---- one file ---- */

struct place {
    int dir; /* owned: the directory the file is in */
    const char *name;
};

/* Opens the directory of a file, made on the way if need be; no link is followed. */
static int place_open(int root, const char *path, bool make, struct place *ret)
{
    const char *slash = strrchr(path, '/');
    cleanup_free char *parent = strndup(path, slash ? (size_t)(slash - path) : 0);
    int fd;

    if (!parent)
        return -ENOMEM;
    for (char *at = parent; make && at && *at; at = at ? at + 1 : NULL) {
        at = strchr(at, '/');
        if (at)
            *at = '\0';
        fd = fd_open_beneath(root, parent, O_RDONLY | O_DIRECTORY, 0, FD_LINKS_NEVER);
        if (fd == -ENOENT) {
            struct place up = {-1, NULL};
            int r = place_open(root, parent, false, &up);

            if (r == 0 && mkdirat(up.dir, up.name, 0755) < 0)
                r = -errno;
            closep(&up.dir);
            if (r < 0)
                return r;
        } else if (fd < 0) {
            return fd;
        } else {
            (void)close(fd);
        }
        if (at)
            *at = '/';
    }
    fd = *parent ? fd_open_beneath(root, parent, O_RDONLY | O_DIRECTORY, 0, FD_LINKS_NEVER)
                 : fd_dup(root);
    if (fd < 0)
        return fd;
    ret->dir = fd;
    ret->name = slash ? slash + 1 : path;
    return 0;
}

static int write_file(int root, const char *path, struct bytes content)
{
    struct place p = {-1, NULL};
    char temp[TEMP_MAX] = ".sandbox-sync-";
    int r = place_open(root, path, true, &p), fd;
    struct stat st;

    if (r < 0)
        return r;
    random_base36(temp + strlen(temp), TEMP_RANDOM);
    fd = openat(p.dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    r = fd < 0 ? -errno : fd_write_all(fd, content.p, content.n);
    if (r == 0 && fstatat(p.dir, p.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        (void)fchmod(fd, st.st_mode & 0777);
    if (r == 0 && renameat(p.dir, temp, p.dir, p.name) < 0)
        r = -errno;
    if (r < 0 && fd >= 0)
        (void)unlinkat(p.dir, temp, 0);
    closep(&fd);
    closep(&p.dir);
    return r;
}

static int remove_file(int root, const char *path)
{
    struct place p = {-1, NULL};
    int r = place_open(root, path, false, &p);

    if (r == 0 && unlinkat(p.dir, p.name, 0) < 0)
        r = -errno;
    closep(&p.dir);
    return r == -ENOENT ? 0 : r;
}

/* Where a change belongs on the host: a directory and a path below it; -1: nowhere. */
static int target(const struct call_tree *t, const struct change *one, const char **ret)
{
    const struct mount_dir *d = mount_of(&t->mount, one->path);
    size_t n = d ? strlen(d->inside) : 0;

    if (!d || !one->path[n])
        return -1;
    *ret = one->path + n + 1;
    return t->fd[d - t->mount.dir];
}

static int apply(const struct call_tree *t, const struct change *one)
{
    const char *path = "";
    int root = target(t, one, &path);

    if (one->type == CHANGE_DELETED)
        return remove_file(root, path);
    if (!one->has_content)
        return -EFBIG;
    return write_file(root, path, (struct bytes){one->content.p, one->content.n});
}

static void undo(const struct call_tree *t, const struct change *one)
{
    const char *path = "";
    int root = target(t, one, &path);

    if (one->before)
        (void)!write_file(root, path, one->before->content);
    else
        (void)!remove_file(root, path);
}

/* ---- the report ---- */

static void put_row(struct buf *rows, const char *event, const struct change *one,
                    const char *error)
{
    struct jw w = {.out = rows, .comma = rows->n > 0};

    rows->max += REPORT_ROW + 12 * strlen(one->path);
    jw_object(&w);
    if (event)
        jw_kv_string(&w, "event", event);
    jw_kv_string(&w, "path", one->path);
    if (event)
        jw_kv_string(&w, "type", change_operation(one->type));
    if (error)
        jw_kv_string(&w, "error", error);
    jw_object_end(&w);
}

static void put_path(struct buf *rows, const char *path)
{
    struct jw w = {.out = rows, .comma = rows->n > 0};

    rows->max += REPORT_ROW + 12 * strlen(path);
    jw_string(&w, path);
}

static void put_list(struct jw *w, const char *key, const struct buf *rows)
{
    jw_key(w, key);
    jw_array(w);
    (void)buf_put(w->out, rows->p ? rows->p : "", rows->n);
    jw_array_end(w);
}

static void report(struct sync *s, struct buf *out)
{
    struct buf synced = BUF_INIT(0);
    struct jw w = JW(out);

    for (size_t i = 0; i < s->done.n; i++)
        put_path(&synced, s->done.v[i]->path);
    *out = BUF_INIT(synced.n + s->failed.n + s->skipped.n + s->events.n + REPORT_ROW);
    jw_object(&w);
    put_list(&w, "synced", &synced);
    put_list(&w, "failed", &s->failed);
    put_list(&w, "skipped", &s->skipped);
    jw_kv_bool(&w, "rolledBack", s->rolled_back);
    put_list(&w, "events", &s->events);
    jw_object_end(&w);
    buf_done(&synced);
}

/* ---- all of them ---- */

static void roll_back(struct sync *s)
{
    while (s->done.n > 0)
        undo(s->tree, s->done.v[--s->done.n]);
    s->rolled_back = true;
}

static void stop(struct sync *s)
{
    s->stopped = true;
    if (s->tree->mount.on_error == ERROR_ROLLBACK)
        roll_back(s);
}

static void one_change(struct sync *s, const struct change *one)
{
    enum mount_answer answer = mount_answers(&s->tree->mount, one->path);
    int r;

    if (answer == ANSWER_SKIP) {
        put_path(&s->skipped, one->path);
        put_row(&s->events, "skipped", one, NULL);
        return;
    }
    if (answer == ANSWER_ABORT) {
        put_row(&s->events, "aborted", one, NULL);
        stop(s);
        return;
    }
    put_row(&s->events, "beforeSync", one, NULL);
    r = apply(s->tree, one);
    if (r == 0) {
        s->done.v[s->done.n++] = one;
        put_row(&s->events, "afterSync", one, NULL);
        return;
    }
    put_row(&s->failed, NULL, one, strerror(-r));
    put_row(&s->events, "syncError", one, strerror(-r));
    if (s->tree->mount.on_error != ERROR_CONTINUE)
        stop(s);
}

void call_tree_sync(struct call_tree *t, const struct changes *all)
{
    struct sync s = {.tree = t};
    const char *below;

    s.done.v = calloc(all->n + 1, sizeof *s.done.v);
    if (!s.done.v)
        return;
    for (int type = 0; type < CHANGE_TYPES; type++)
        for (size_t i = 0; i < all->n && !s.stopped; i++) {
            const struct change *one = &all->v[i];

            if ((int)one->type != type)
                continue;
            if (one->denied)
                put_row(&s.events, "permissionDenied", one, NULL);
            else if (target(t, one, &below) < 0)
                put_path(&s.skipped, one->path);
            else
                one_change(&s, one);
        }
    report(&s, &t->sync);
    free(s.done.v);
    buf_done(&s.failed);
    buf_done(&s.skipped);
    buf_done(&s.events);
}
