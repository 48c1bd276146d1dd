/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tar.h"
#include "init/archive.h"
#include "init/beside.h"
#include "init/files.h"
#include "init/helper.h"

enum {
    PART = 64 * 1024,      /* read at once */
    TRIES_MAX = 16,        /* a tenant may put things in the way as fast as we remove them */
    LATER_MAX = 64 << 20,  /* bytes of directories whose modes and times wait for the end */
    WORK_MODE = 0700,      /* what we need in a directory until then */
    DIRECTORY_MODE = 0755, /* of parents that the archive does not mention */
    FIRST_MODE = 0600,     /* of a file until it is complete */
};

/* A directory's mode and times; its name follows. */
struct later {
    uint32_t mode, name_n;
    int64_t mtime_s;
    uint32_t mtime_ns, size; /* size: of this record */
};

struct unpacking {
    struct tar_reader reader;
    int top;                    /* owned: the directory */
    int parent;                 /* owned: of the entry last looked at; -1: none yet */
    char parent_name[PATH_MAX]; /* how it was found */
    char base[NAME_MAX + 1];    /* the entry's own name in there */
    struct beside file;         /* being written */
    struct tar_entry entry;     /* of that file; names are gone */
    struct buf later;           /* struct later and names, each rounded up */
    uint64_t bytes;             /* of files */
    int sys;                    /* why we stopped: errno */
    enum help_op op;
};

static int fail(struct unpacking *u, int sys, enum help_op op)
{
    u->sys = sys;
    u->op = op;
    return -1;
}

/* ---- where things go ---- */

static int open_below(const struct unpacking *u, const char *name)
{
    return fd_open_beneath(u->top, name, FD_LOOK | O_DIRECTORY, 0, FD_LINKS_INSIDE);
}

/* Opens a directory below the top and makes what is missing on the way. */
static int reach(const struct unpacking *u, const char *name)
{
    char path[PATH_MAX];
    int fd = open_below(u, name);

    for (size_t at = 0; fd == -ENOENT && name[at];) {
        cleanup_close int up = -1;

        (void)snprintf(path, sizeof path, "%.*s", (int)at, name);
        up = open_below(u, at ? path : ".");
        if (up < 0)
            return up;
        at += at > 0;
        (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(name + at, "/"), name + at);
        if (mkdirat(up, path, DIRECTORY_MODE) < 0 && errno != EEXIST)
            return -errno;
        at += strlen(path);
        if (name[at] == '\0')
            fd = open_below(u, name);
    }
    return fd;
}

/* Cuts a name into its directory ("." at the top) and the rest. */
static int split(const char *name, char dir[PATH_MAX], char base[NAME_MAX + 1])
{
    const char *slash = strrchr(name, '/');
    const char *last = slash ? slash + 1 : name;

    if (strlen(last) > NAME_MAX)
        return -ENAMETOOLONG;
    (void)snprintf(dir, PATH_MAX, "%.*s", slash ? (int)(slash - name) : 1, slash ? name : ".");
    (void)snprintf(base, NAME_MAX + 1, "%s", last);
    return 0;
}

/* Archives list one directory after the other: the last one is kept open. */
static int enter_parent(struct unpacking *u, const char *name)
{
    char dir[PATH_MAX];
    int fd = split(name, dir, u->base);

    if (fd < 0)
        return fd;
    if (u->parent >= 0 && strcmp(dir, u->parent_name) == 0)
        return 0;
    fd = reach(u, dir);
    if (fd < 0)
        return fd;
    closep(&u->parent);
    u->parent = fd;
    memcpy(u->parent_name, dir, sizeof dir);
    return 0;
}

/* Tries until nothing is in the way; what is no directory is removed. Result of `make` or -errno.
 */
static int place(struct unpacking *u, int (*make)(struct unpacking *u, const struct tar_entry *e),
                 const struct tar_entry *e)
{
    int r = enter_parent(u, e->name);

    if (r < 0)
        return r;
    for (int i = 0; i < TRIES_MAX; i++) {
        r = make(u, e);
        if (r != -EEXIST)
            return r;
        if (unlinkat(u->parent, u->base, 0) < 0 && errno != ENOENT)
            return -errno;
    }
    return r;
}

/* ---- one of each kind ---- */

static int make_file(struct unpacking *u, const struct tar_entry *e)
{
    struct stat st;

    if (fstatat(u->parent, u->base, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return -EISDIR;
    u->entry = *e;
    return beside_open(&u->file, u->parent, FIRST_MODE);
}

/* For utimensat(): read now, changed then. A time that no file system keeps is no failure. */
static void fill_times(struct timespec t[2], int64_t s, uint32_t ns)
{
    t[0] = (struct timespec){.tv_nsec = UTIME_NOW};
    t[1] = (struct timespec){.tv_sec = s, .tv_nsec = (long)ns};
}

static int make_symlink(struct unpacking *u, const struct tar_entry *e)
{
    struct timespec t[2];

    if (symlinkat(e->link, u->parent, u->base) < 0)
        return -errno;
    fill_times(t, e->mtime_s, e->mtime_ns);
    (void)utimensat(u->parent, u->base, t, AT_SYMLINK_NOFOLLOW);
    return 0;
}

static int make_hardlink(struct unpacking *u, const struct tar_entry *e)
{
    char dir[PATH_MAX], base[NAME_MAX + 1];
    int r = split(e->link, dir, base);
    cleanup_close int from = r < 0 ? r : open_below(u, dir);
    struct stat a, b;

    if (from < 0)
        return from;
    if (linkat(from, base, u->parent, u->base, 0) == 0)
        return 0;
    r = -errno;
    if (r == -EEXIST && fstatat(from, base, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
        fstatat(u->parent, u->base, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return 0; /* it is that file already: must not be removed first */
    return r;
}

/* One that is there is fine, also by a link that stays inside. */
static int make_directory(struct unpacking *u, const struct tar_entry *e)
{
    cleanup_close int there = -1;
    int r;

    if (mkdirat(u->parent, u->base, WORK_MODE) == 0)
        return 0;
    r = -errno;
    if (r == -EEXIST)
        there = open_below(u, e->name);
    return there >= 0 ? 0 : r;
}

/* Its mode may forbid what is still to be unpacked, and its time changes with it. */
static int put_later(struct unpacking *u, const struct tar_entry *e)
{
    size_t n = strlen(e->name) + 1, size = (sizeof(struct later) + n + 7) / 8 * 8;
    struct later l = {
        .mode = e->mode,
        .name_n = (uint32_t)n,
        .mtime_s = e->mtime_s,
        .mtime_ns = e->mtime_ns,
        .size = (uint32_t)size,
    };
    static const char zeros[8];

    (void)buf_reserve(&u->later, size);
    (void)buf_put(&u->later, e->name, n);
    (void)buf_put(&u->later, zeros, size - sizeof l - n);
    (void)buf_put(&u->later, &l, sizeof l); /* behind its name: they are read backwards */
    return u->later.failed ? -ENOMEM : 0;
}

static void set_one_later(const struct unpacking *u, const struct later *l, const char *name)
{
    cleanup_close int fd =
        fd_open_beneath(u->top, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0, FD_LINKS_INSIDE);
    struct timespec t[2];

    if (fd < 0)
        return;
    fill_times(t, l->mtime_s, l->mtime_ns);
    (void)futimens(fd, t); /* of one that is not ours: as far as allowed */
    (void)fchmod(fd, l->mode);
}

/* The innermost first: their parents may lock us out. */
static void set_later(struct unpacking *u)
{
    for (size_t at = u->later.n; at > 0;) {
        struct later l;

        memcpy(&l, u->later.p + at - sizeof l, sizeof l);
        at -= l.size;
        set_one_later(u, &l, u->later.p + at);
    }
}

/* ---- the sink ---- */

static int on_entry(void *user, const struct tar_entry *e)
{
    static const struct {
        int (*make)(struct unpacking *u, const struct tar_entry *e);
        enum help_op op;
    } kinds[] = {
        [TAR_FILE] = {make_file,      HELP_OP_OPEN },
        [TAR_DIRECTORY] = {make_directory, HELP_OP_MKDIR},
        [TAR_SYMLINK] = {make_symlink,   HELP_OP_LINK },
        [TAR_HARDLINK] = {make_hardlink,  HELP_OP_LINK },
    };
    struct unpacking *u = user;
    int r;

    if (strcmp(e->name, ".") == 0)
        return 0; /* the directory itself keeps what it has */
    r = place(u, kinds[e->kind].make, e);
    if (r == 0 && e->kind == TAR_DIRECTORY)
        r = put_later(u, e);
    return r < 0 ? fail(u, -r, kinds[e->kind].op) : 0;
}

static int on_data(void *user, const char *p, size_t n)
{
    struct unpacking *u = user;
    int r = fd_write_all(u->file.fd, p, n);

    u->bytes += n;
    return r < 0 ? fail(u, -r, HELP_OP_WRITE) : 0;
}

static int on_entry_end(void *user)
{
    struct unpacking *u = user;
    struct timespec t[2];
    int r;

    fill_times(t, u->entry.mtime_s, u->entry.mtime_ns);
    (void)futimens(u->file.fd, t);
    if (fchmod(u->file.fd, u->entry.mode) < 0)
        return fail(u, errno, HELP_OP_OPEN);
    r = beside_commit(&u->file, u->base);
    return r < 0 ? fail(u, -r, HELP_OP_OPEN) : 0;
}

/* ---- all of it ---- */

/* Until its end, which is read even when nothing in it matters any more. 0 or -1. */
static int read_all(struct unpacking *u, int fd)
{
    char part[PART];
    ssize_t n;

    while ((n = read(fd, part, sizeof part)) > 0)
        if (tar_feed(&u->reader, part, (size_t)n) < 0)
            return -1;
    if (n < 0)
        return fail(u, errno, HELP_OP_READ);
    return tar_finish(&u->reader);
}

static void answer(struct unpacking *u, int sock, int result, const char *path)
{
    struct init_msg m = {
        .verb = HELP_DONE,
        .size = (int64_t)u->bytes,
        .io_read = (int64_t)u->reader.entries,
    };
    const char *where = u->reader.name[0] ? u->reader.name : path;

    if (result == 0) {
        helper_say(sock, &m, NULL, 0, -1);
        return;
    }
    m.status = (int32_t)(u->sys ? u->op : HELP_OP_UNPACK);
    m.arg = u->sys ? u->sys : EBADMSG;
    m.token = u->reader.fault;
    m.size = (int64_t)u->reader.head_at;
    helper_say(sock, &m, where, strlen(where), -1);
}

void archive_unpack(int sock, const struct init_msg *m, const char *path, int fd)
{
    struct unpacking u = {
        .top = -1, .parent = -1, .file = BESIDE_NONE, .later = BUF_INIT(LATER_MAX)};
    const struct tar_limits limits = {
        .entries = (uint64_t)m->arg, .bytes = (uint64_t)m->size, .depth = m->token};
    const struct tar_sink sink = {on_entry, on_data, on_entry_end, &u};
    char failed[PATH_MAX];
    int r = files_make_directories(path, failed);

    if (r < 0) {
        helper_done(sock, -r, HELP_OP_MKDIR, failed);
        return;
    }
    u.top = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (u.top < 0) {
        helper_done(sock, errno, HELP_OP_OPEN, path);
        return;
    }
    tar_open(&u.reader, &limits, &sink);
    r = read_all(&u, fd);
    beside_drop(&u.file);
    set_later(&u);
    answer(&u, sock, r, path);
    tar_close(&u.reader);
    buf_done(&u.later);
    fd_close_all((int[]){u.parent, u.top}, 2);
}
