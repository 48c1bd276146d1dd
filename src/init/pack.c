/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/os.h"
#include "base/tar.h"
#include "init/archive.h"
#include "init/entries.h"
#include "init/fs.h"
#include "init/helper.h"

enum {
    OUT_MAX = 128 * 1024,  /* collected before it is written */
    OUT_FULL = 64 * 1024,  /* written from here on: a small archive can still fail in words */
    NAMES_MAX = 256 << 20, /* bytes of the names of one directory */
    LINKS_FIRST = 64,
};

/* A file with several names, under the first of them. */
struct seen {
    dev_t dev;
    ino_t ino;
    char *name; /* owned; NULL: an empty place */
};

struct packing {
    int out;
    struct tar_limits limits;
    struct buf buffer; /* on its way out */
    struct buf path;   /* of where we are, relative to the directory */
    uint64_t bytes, entries;
    struct seen *seen; /* owned: hashed by inode, a power of two in size */
    size_t seen_n, seen_room;
    int sys; /* why we stopped: errno */
    enum help_op op;
    enum tar_fault fault;
};

static int fail(struct packing *p, int sys, enum help_op op)
{
    p->sys = sys;
    p->op = op;
    return -1;
}

static int refuse(struct packing *p, enum tar_fault fault)
{
    p->fault = fault;
    return fail(p, EFBIG, HELP_OP_PACK);
}

/* ---- output ---- */

static int flush(struct packing *p)
{
    int r = fd_write_all(p->out, p->buffer.p, p->buffer.n);

    buf_clear(&p->buffer);
    return r < 0 ? fail(p, -r, HELP_OP_PACK) : 0;
}

/* Counts what was put into the buffer since it had n bytes. */
static int sent(struct packing *p, size_t n)
{
    if (p->buffer.failed)
        return fail(p, ENOMEM, HELP_OP_PACK);
    p->bytes += p->buffer.n - n;
    if (p->bytes > p->limits.bytes)
        return refuse(p, TAR_LARGE);
    return p->buffer.n >= OUT_FULL ? flush(p) : 0;
}

static int put_zeros(struct packing *p, size_t n)
{
    static const char zeros[TAR_END_SIZE];
    size_t before = p->buffer.n;

    (void)buf_put(&p->buffer, zeros, n);
    return sent(p, before);
}

static int put_header(struct packing *p, enum tar_kind kind, const struct stat *st,
                      const char *link)
{
    const struct tar_entry e = {
        .kind = kind,
        .name = p->path.p,
        .link = link,
        .size = kind == TAR_FILE ? (uint64_t)st->st_size : 0,
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .mtime_s = st->st_mtim.tv_sec,
    };
    size_t before = p->buffer.n;

    if (++p->entries > p->limits.entries)
        return refuse(p, TAR_MANY);
    if (e.size > p->limits.bytes)
        return refuse(p, TAR_LARGE);
    tar_put_header(&p->buffer, &e);
    return sent(p, before);
}

/* ---- files with several names ---- */

static struct seen *seen_place(const struct packing *p, dev_t dev, ino_t ino)
{
    size_t i = (size_t)(ino * 0x9e3779b97f4a7c15u >> 32) & (p->seen_room - 1);

    while (p->seen[i].name && (p->seen[i].dev != dev || p->seen[i].ino != ino))
        i = (i + 1) & (p->seen_room - 1);
    return &p->seen[i];
}

static int seen_grow(struct packing *p)
{
    struct seen *old = p->seen;
    size_t n = p->seen_room;

    p->seen_room = n ? n * 2 : LINKS_FIRST;
    p->seen = calloc(p->seen_room, sizeof *p->seen);
    if (!p->seen) {
        p->seen = old;
        p->seen_room = n;
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        if (old[i].name)
            *seen_place(p, old[i].dev, old[i].ino) = old[i];
    free(old);
    return 0;
}

/* The name it had before, "" when this is the first; NULL: no memory. */
static const char *seen_before(struct packing *p, const struct stat *st)
{
    struct seen *s;

    if (st->st_nlink < 2)
        return "";
    if (p->seen_n * 2 >= p->seen_room && seen_grow(p) < 0)
        return NULL;
    s = seen_place(p, st->st_dev, st->st_ino);
    if (s->name)
        return s->name;
    *s = (struct seen){st->st_dev, st->st_ino, strdup(p->path.p)};
    p->seen_n++;
    return s->name ? "" : NULL;
}

/* ---- one of each kind ---- */

/* As many bytes as the header announced, whatever became of the file. */
static int put_content(struct packing *p, int fd, uint64_t size)
{
    uint64_t left = size;

    while (left > 0) {
        size_t want = left < OUT_FULL ? (size_t)left : OUT_FULL, before = p->buffer.n;
        ssize_t n;

        if (buf_reserve(&p->buffer, want) < 0)
            return fail(p, ENOMEM, HELP_OP_PACK);
        n = read(fd, p->buffer.p + before, want);
        if (n < 0)
            return fail(p, errno, HELP_OP_READ);
        if (n == 0) {
            memset(p->buffer.p + before, 0, want);
            n = (ssize_t)want;
        }
        p->buffer.n += (size_t)n;
        left -= (uint64_t)n;
        if (sent(p, before) < 0)
            return -1;
    }
    return put_zeros(p, tar_padding(size));
}

/* Vanished, or become something else, since its directory was read: left out. */
static bool is_lost(int sys)
{
    return sys == ENOENT || sys == ELOOP || sys == ENXIO || sys == ENOTDIR;
}

static int pack_file(struct packing *p, int dir, const char *name)
{
    cleanup_close int fd =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const char *before;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return is_lost(errno) ? 0 : fail(p, errno, HELP_OP_OPEN);
    if (!S_ISREG(st.st_mode))
        return 0;
    before = seen_before(p, &st);
    if (!before)
        return fail(p, ENOMEM, HELP_OP_PACK);
    if (*before)
        return put_header(p, TAR_HARDLINK, &st, before);
    if (put_header(p, TAR_FILE, &st, "") < 0)
        return -1;
    return put_content(p, fd, (uint64_t)st.st_size);
}

static int pack_link(struct packing *p, int dir, const char *name, const struct stat *st)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);

    if (n < 0)
        return is_lost(errno) || errno == EINVAL ? 0 : fail(p, errno, HELP_OP_READ);
    target[n] = '\0';
    return put_header(p, TAR_SYMLINK, st, target);
}

static int walk(struct packing *p, int dir, const struct stat *st, unsigned depth);

static int pack_directory(struct packing *p, int dir, const char *name, const struct stat *above,
                          unsigned depth)
{
    cleanup_close int fd =
        openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return is_lost(errno) ? 0 : fail(p, errno, HELP_OP_OPEN);
    if (depth == p->limits.depth)
        return refuse(p, TAR_DEEP);
    if (put_header(p, TAR_DIRECTORY, &st, "") < 0)
        return -1;
    if (st.st_dev != above->st_dev && fs_is_made_up(fd))
        return 0;
    return walk(p, fd, &st, depth + 1);
}

/* ---- walking ---- */

struct names {
    struct buf text; /* each with its NUL */
    char **at;       /* owned: sorted */
    size_t n;
};

static void names_done(struct names *n)
{
    buf_done(&n->text);
    free(n->at);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_read(struct names *n, int dir)
{
    struct entries all = {.fd = dir};
    int error = 0;

    for (const char *name; error == 0 && (name = entries_next(&all, &error));)
        if (buf_put(&n->text, name, strlen(name) + 1) == 0)
            n->n++;
    if (error)
        return -error;
    n->at = calloc(n->n + 1, sizeof *n->at);
    if (!n->at || n->text.failed)
        return -ENOMEM;
    for (size_t i = 0, at = 0; i < n->n; i++, at += strlen(n->text.p + at) + 1)
        n->at[i] = n->text.p + at;
    qsort(n->at, n->n, sizeof *n->at, compare);
    return 0;
}

/* One name of where we are, whose path is already the current one. */
static int pack_one(struct packing *p, int dir, const char *name, const struct stat *above,
                    unsigned depth)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return is_lost(errno) ? 0 : fail(p, errno, HELP_OP_STAT);
    if (S_ISDIR(st.st_mode))
        return pack_directory(p, dir, name, above, depth);
    if (S_ISREG(st.st_mode))
        return pack_file(p, dir, name);
    return S_ISLNK(st.st_mode) ? pack_link(p, dir, name, &st) : 0;
}

static int walk(struct packing *p, int dir, const struct stat *st, unsigned depth)
{
    cleanup_with(names_done) struct names names = {.text = BUF_INIT(NAMES_MAX)};
    size_t here = p->path.n;
    int r = names_read(&names, dir);

    if (r < 0)
        return fail(p, -r, HELP_OP_READ);
    for (size_t i = 0; i < names.n && r == 0; i++) {
        if (here > 0)
            (void)buf_putc(&p->path, '/');
        (void)buf_puts(&p->path, names.at[i]);
        if (p->path.failed)
            return fail(p, ENAMETOOLONG, HELP_OP_OPEN);
        r = pack_one(p, dir, names.at[i], st, depth);
        if (r < 0)
            return -1; /* the path says where */
        p->path.n = here;
        p->path.p[here] = '\0';
    }
    return 0;
}

/* ---- all of it ---- */

static void answer(struct packing *p, int sock, int result, const char *path)
{
    struct init_msg m = {
        .verb = HELP_DONE, .size = (int64_t)p->bytes, .io_read = (int64_t)p->entries};
    const char *where = p->path.n > 0 ? p->path.p : path;

    if (result == 0) {
        helper_say(sock, &m, NULL, 0, -1);
        return;
    }
    m.arg = p->sys;
    m.status = (int32_t)p->op;
    m.token = p->fault;
    helper_say(sock, &m, where, strlen(where), -1);
}

static void packing_done(struct packing *p)
{
    for (size_t i = 0; i < p->seen_room; i++)
        free(p->seen[i].name);
    free(p->seen);
    buf_done(&p->buffer);
    buf_done(&p->path);
}

void archive_pack(int sock, const struct init_msg *m, const char *path, int fd)
{
    cleanup_with(packing_done) struct packing p = {
        .out = fd,
        .limits = {.entries = (uint64_t)m->arg, .bytes = (uint64_t)m->size, .depth = m->token},
        .buffer = BUF_INIT(OUT_MAX + 2 * TAR_META_MAX),
        .path = BUF_INIT(TAR_META_MAX / 2),
    };
    cleanup_close int top = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    int r;

    if (top < 0 || fstat(top, &st) < 0) {
        helper_done(sock, errno, HELP_OP_OPEN, path);
        return;
    }
    r = walk(&p, top, &st, 0);
    if (r == 0)
        r = put_zeros(&p, TAR_END_SIZE);
    if (r == 0)
        r = flush(&p);
    answer(&p, sock, r, path);
}
