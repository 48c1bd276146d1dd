/* SPDX-License-Identifier: MIT */
#include "init/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/entries.h"
#include "init/entry.h"
#include "init/helper.h"

enum {
    QUEUE_READ = 64 * 1024, /* bytes of events read at once */
    TOLD_MAX = 4096,        /* names that are remembered as told */
    WANTED = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_ATTRIB | IN_DELETE |
             IN_DELETE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK,
    RECORD_MAX = sizeof(struct help_event) + NOTIFY_NAME_MAX + ENTRY_RECORD_MAX,
};
_Static_assert((int)RECORD_MAX <= (int)HELP_DATA_MAX, "an event fits into a message");

struct watched {
    int wd;
    char *path; /* owned: relative; "": the directory itself */
};

/* A name in a new directory that was told when the directory was read. */
struct told {
    int wd;
    char *name; /* owned */
};

struct notify {
    struct entry_list *list;
    int queue; /* owned */
    /* A descriptor of it would keep the directory from being gone when it is removed. */
    const char *path;
    bool recursive, entries;
    struct watched *dir; /* owned: by wd */
    size_t dirs_n, dirs_room;
    struct told told[TOLD_MAX];
    size_t told_n;
    long told_left; /* bytes of the queue that may repeat them */
    struct {
        uint32_t cookie; /* 0: none */
        char path[NOTIFY_NAME_MAX];
    } moving; /* a directory that left its place, and may show up in another */
};

enum { WHOLE_MAX = PATH_MAX + NOTIFY_NAME_MAX };

/* The path of what is `name` in the directory; "": that itself. */
static const char *whole_path(const struct notify *n, const char *name, char out[WHOLE_MAX])
{
    (void)snprintf(out, WHOLE_MAX, "%s%s%s", n->path, *name ? "/" : "", name);
    return out;
}

/* ---- what is told ---- */

static void tell(struct notify *n, enum help_event_kind kind, const char *name)
{
    struct help_event v = {.kind = kind, .name_n = (uint32_t)strlen(name)};
    char *record = malloc(RECORD_MAX);
    bool looks = n->entries && (kind == HELP_EVENT_CREATE || kind == HELP_EVENT_WRITE ||
                                kind == HELP_EVENT_CHMOD);
    char whole[WHOLE_MAX];
    ssize_t k = 0;

    if (!record)
        _exit(1); /* the daemon sees that the watch has ended */
    if (looks)
        k = entry_record(n->list, AT_FDCWD, whole_path(n, strcmp(name, ".") ? name : "", whole),
                         name, record + sizeof v + v.name_n);
    v.entry_n = k > 0 ? (uint32_t)k : 0;
    v.n = (uint32_t)sizeof v + v.name_n + v.entry_n;
    memcpy(record, &v, sizeof v);
    memcpy(record + sizeof v, name, v.name_n);
    entry_put(n->list, record, v.n);
    free(record);
}

static void overflow(struct notify *n)
{
    tell(n, HELP_EVENT_OVERFLOW, "");
}

/* ---- directories ---- */

/* Where it is, or belongs. */
static size_t dir_at(const struct notify *n, int wd)
{
    size_t low = 0, high = n->dirs_n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (n->dir[mid].wd < wd)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct watched *dir_find(const struct notify *n, int wd)
{
    size_t at = dir_at(n, wd);

    return at < n->dirs_n && n->dir[at].wd == wd ? &n->dir[at] : NULL;
}

static void dir_remove(struct notify *n, size_t at)
{
    free(n->dir[at].path);
    n->dirs_n--;
    memmove(n->dir + at, n->dir + at + 1, (n->dirs_n - at) * sizeof *n->dir);
}

static int dir_put(struct notify *n, int wd, const char *path)
{
    size_t at = dir_at(n, wd);
    char *copy = strdup(path);

    if (!copy)
        return -ENOMEM;
    if (at < n->dirs_n && n->dir[at].wd == wd) { /* it is known by another path */
        free(n->dir[at].path);
        n->dir[at].path = copy;
        return 0;
    }
    if (n->dirs_n == n->dirs_room) {
        size_t room = n->dirs_room ? n->dirs_room * 2 : 64;
        struct watched *more = realloc(n->dir, room * sizeof *more);

        if (!more) {
            free(copy);
            return -ENOMEM;
        }
        n->dir = more;
        n->dirs_room = room;
    }
    memmove(n->dir + at + 1, n->dir + at, (n->dirs_n - at) * sizeof *n->dir);
    n->dir[at] = (struct watched){wd, copy};
    n->dirs_n++;
    return 0;
}

static bool is_below(const char *path, const char *top)
{
    size_t n = strlen(top);

    return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool join(char out[NOTIFY_NAME_MAX], const char *dir, const char *name)
{
    return snprintf(out, NOTIFY_NAME_MAX, "%s%s%s", dir, *dir && *name ? "/" : "", name) <
           NOTIFY_NAME_MAX;
}

/* -ENOTDIR: it is none, or a link. */
static int watch_one(struct notify *n, const char *path)
{
    char whole[WHOLE_MAX];
    uint32_t mask = WANTED | (*path ? IN_DONT_FOLLOW : 0);
    int wd = inotify_add_watch(n->queue, whole_path(n, path, whole), mask);

    if (wd < 0)
        return -errno;
    if (n->dirs_n == NOTIFY_DIRECTORIES_MAX && !dir_find(n, wd)) {
        (void)inotify_rm_watch(n->queue, wd);
        return -ENOSPC;
    }
    return dir_put(n, wd, path) < 0 ? -ENOMEM : wd;
}

/* ---- names that were told already ---- */

static void told_forget(struct notify *n)
{
    while (n->told_n > 0)
        free(n->told[--n->told_n].name);
    n->told_left = 0;
}

static void told_put(struct notify *n, int wd, const char *name)
{
    char *copy = n->told_n < TOLD_MAX ? strdup(name) : NULL;

    if (copy)
        n->told[n->told_n++] = (struct told){wd, copy};
}

static bool told_take(struct notify *n, int wd, const char *name)
{
    for (size_t i = 0; i < n->told_n; i++)
        if (n->told[i].wd == wd && strcmp(n->told[i].name, name) == 0) {
            free(n->told[i].name);
            n->told[i] = n->told[--n->told_n];
            return true;
        }
    return false;
}

/* ---- adding ---- */

static int add(struct notify *n, const char *path, bool new, size_t depth);

/* What is in a directory whose watch stands. */
static int add_below(struct notify *n, const char *path, int wd, bool new, size_t depth)
{
    char whole[WHOLE_MAX];
    cleanup_close int fd =
        open(whole_path(n, path, whole),
             O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | (*path ? O_NOFOLLOW : 0));
    struct entries *all = fd >= 0 ? calloc(1, sizeof *all) : NULL;
    char *below = malloc(NOTIFY_NAME_MAX);
    const char *name;
    int error = 0, r = 0;

    if (all)
        all->fd = fd;
    while (r == 0 && all && below && (name = entries_next(all, &error))) {
        if (!join(below, path, name)) {
            r = -ENOSPC;
            break;
        }
        if (new) {
            told_put(n, wd, name);
            tell(n, HELP_EVENT_CREATE, below);
        }
        r = add(n, below, new, depth + 1);
        if (r == -ENOTDIR || r == -ENOENT || r == -EACCES)
            r = 0;
    }
    r = fd >= 0 && (!all || !below) ? -ENOMEM : r;
    free(below);
    free(all);
    return r;
}

/* A directory and, where that is wanted, those below it. new: what is in it is told. */
static int add(struct notify *n, const char *path, bool new, size_t depth)
{
    int wd = watch_one(n, path);

    if (wd < 0)
        return wd;
    if (!n->recursive)
        return 0;
    return depth == NOTIFY_DEPTH_MAX ? -ENOSPC : add_below(n, path, wd, new, depth);
}

static size_t depth_of(const char *path)
{
    size_t n = 1;

    while (*path)
        n += *path++ == '/';
    return n;
}

static void add_later(struct notify *n, const char *path, bool new, long unread)
{
    int queued = 0, r = add(n, path, new, depth_of(path));

    if (r < 0 && r != -ENOTDIR && r != -ENOENT && r != -EACCES)
        overflow(n); /* what happens there is not seen */
    (void)ioctl(n->queue, FIONREAD, &queued);
    n->told_left = unread + queued;
}

/* ---- moving ---- */

static void drop_below(struct notify *n, const char *path)
{
    for (size_t i = n->dirs_n; i > 0; i--)
        if (*n->dir[i - 1].path && is_below(n->dir[i - 1].path, path)) {
            (void)inotify_rm_watch(n->queue, n->dir[i - 1].wd);
            dir_remove(n, i - 1);
        }
}

/* False: the directory had no watch yet when it moved. */
static bool rename_below(struct notify *n, const char *from, const char *to)
{
    size_t from_n = strlen(from);
    bool found = false;

    for (size_t i = 0; i < n->dirs_n; i++) {
        char *new;

        if (!*n->dir[i].path || !is_below(n->dir[i].path, from))
            continue;
        if (asprintf(&new, "%s%s", to, n->dir[i].path + from_n) < 0)
            _exit(1);
        found |= n->dir[i].path[from_n] == '\0';
        free(n->dir[i].path);
        n->dir[i].path = new;
    }
    return found;
}

/* It did not show up in another place of the tree. */
static void moved_away(struct notify *n)
{
    if (n->moving.cookie)
        drop_below(n, n->moving.path);
    n->moving.cookie = 0;
}

/* ---- events ---- */

static enum help_event_kind kind_of(uint32_t mask)
{
    return mask & (IN_CREATE | IN_MOVED_TO)      ? HELP_EVENT_CREATE
           : mask & IN_MOVED_FROM                ? HELP_EVENT_RENAME
           : mask & (IN_DELETE | IN_DELETE_SELF) ? HELP_EVENT_REMOVE
           : mask & IN_MODIFY                    ? HELP_EVENT_WRITE
                                                 : HELP_EVENT_CHMOD;
}

/* A directory has come to this place. */
static void directory_came(struct notify *n, const struct inotify_event *v, const char *path,
                           long unread)
{
    if ((v->mask & IN_MOVED_TO) && n->moving.cookie && n->moving.cookie == v->cookie) {
        n->moving.cookie = 0;
        if (!rename_below(n, n->moving.path, path))
            add_later(n, path, true, unread);
    } else if (n->recursive) {
        moved_away(n);
        add_later(n, path, v->mask & IN_CREATE, unread);
    }
}

static void on_event(struct notify *n, const struct inotify_event *v, long unread)
{
    const struct watched *d = dir_find(n, v->wd);
    const char *name = v->len > 0 ? v->name : "";
    char path[NOTIFY_NAME_MAX];

    if (v->mask & IN_Q_OVERFLOW) {
        overflow(n);
        return;
    }
    if (!d)
        return;
    if (v->mask & IN_IGNORED) {
        dir_remove(n, (size_t)(d - n->dir));
        return;
    }
    if (v->len == 0 && *d->path)
        return; /* the directory above tells the same with its name */
    if (!join(path, d->path, name)) {
        overflow(n);
        return;
    }
    if ((v->mask & (IN_CREATE | IN_MOVED_TO)) && told_take(n, v->wd, name))
        return;
    tell(n, kind_of(v->mask), *path ? path : ".");
    if (!(v->mask & IN_ISDIR))
        return;
    if (v->mask & (IN_CREATE | IN_MOVED_TO)) {
        directory_came(n, v, path, unread);
    } else if ((v->mask & IN_MOVED_FROM) && n->recursive) {
        n->moving.cookie = v->cookie;
        memcpy(n->moving.path, path, strlen(path) + 1);
    }
}

/* False: the queue cannot be read. */
static bool read_events(struct notify *n)
{
    _Alignas(struct inotify_event) char bytes[QUEUE_READ];
    ssize_t got = read(n->queue, bytes, sizeof bytes);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    for (ssize_t at = 0; at < got;) {
        const struct inotify_event *v = (const void *)(bytes + at);
        long size = (long)sizeof *v + v->len;

        at += size;
        if (n->moving.cookie && n->moving.cookie != v->cookie)
            moved_away(n);
        on_event(n, v, got - at);
        if (n->told_left > 0 && (n->told_left -= size) <= 0)
            told_forget(n);
    }
    moved_away(n);
    return true;
}

/* ---- the watch ---- */

static void run(struct notify *n, int sock)
{
    struct init_msg stands = {.verb = HELP_EVENTS};

    helper_say(sock, &stands, NULL, 0, -1);
    entry_flush(n->list);
    for (;;) {
        struct pollfd p[] = {
            {.fd = sock,     .events = POLLIN},
            {.fd = n->queue, .events = POLLIN},
        };

        if (poll(p, ARRAY_LEN(p), -1) < 0) {
            if (errno != EINTR)
                return;
            continue;
        }
        if (p[0].revents || (p[1].revents && !read_events(n)))
            return;
        entry_flush(n->list);
    }
}

static int begin(struct notify *n, enum help_op *ret_op)
{
    struct stat st;
    int r;

    *ret_op = HELP_OP_OPEN;
    if (stat(n->path, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    *ret_op = HELP_OP_WATCH;
    n->queue = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (n->queue < 0)
        return -errno;
    r = add(n, "", false, 0);
    return r < 0 ? r : 0;
}

void notify_serve(int sock, const struct init_msg *m, const char *path)
{
    struct notify *n = calloc(1, sizeof *n);
    enum help_op op = HELP_OP_WATCH;
    int r = -ENOMEM;

    if (n) {
        n->queue = -1;
        n->path = path;
        n->recursive = m->arg & WATCH_RECURSIVE;
        n->entries = m->arg & WATCH_ENTRIES;
        n->list = malloc(sizeof *n->list);
    }
    if (n && n->list) {
        entry_list_init(n->list, sock, HELP_EVENTS);
        r = begin(n, &op);
    }
    if (r < 0)
        helper_done(sock, -r, op, path);
    else
        run(n, sock);
    /* What the watch held goes with the process: it is used for nothing else. */
    if (r >= 0 || !n)
        _exit(0);
    closep(&n->queue);
    while (n->dirs_n > 0)
        dir_remove(n, n->dirs_n - 1);
    free(n->dir);
    free(n->list);
    free(n);
}
