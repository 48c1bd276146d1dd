/* SPDX-License-Identifier: MIT */
/* The spool's work on disk, one batch at a time. Touches operations and descriptors, not the index.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/os.h"
#include "net/spool_inner.h"

enum { NAME_MAX_BYTES = SPOOL_ID_MAX + 16, PIECES = 3 };

static void final_name(const char *id, char out[NAME_MAX_BYTES])
{
    (void)snprintf(out, NAME_MAX_BYTES, "%s.json", id);
}

/* A dot in front: no id begins with one. */
static void half_name(uint64_t number, char out[NAME_MAX_BYTES])
{
    (void)snprintf(out, NAME_MAX_BYTES, ".new-%" PRIu64, number);
}

/* Usually one call; what the kernel left over is written piece by piece. */
static int write_pieces(int fd, const struct op *o)
{
    struct iovec all[PIECES] = {
        {.iov_base = o->head.p,                    .iov_len = o->head.n},
        {.iov_base = (void *)(uintptr_t)o->body.p, .iov_len = o->body.n},
        {.iov_base = o->tail.p,                    .iov_len = o->tail.n},
    };
    ssize_t n = writev(fd, all, PIECES);
    size_t done = n > 0 ? (size_t)n : 0;

    if (n < 0 && errno != EINTR)
        return -errno;
    for (size_t i = 0; i < PIECES; i++) {
        size_t skip = done < all[i].iov_len ? done : all[i].iov_len;
        int r = fd_write_all(fd, (const char *)all[i].iov_base + skip, all[i].iov_len - skip);

        if (r < 0)
            return r;
        done -= skip;
    }
    return 0;
}

static void put_write(const struct spool *s, struct op *o)
{
    char name[NAME_MAX_BYTES];

    half_name(o->number, name);
    o->fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    o->failed = o->fd < 0 ? -errno : write_pieces(o->fd, o);
    if (o->failed == 0 && !o->hasty) /* only a hint: the sync that follows has less to wait for */
        os_write_back(o->fd);
}

static void put_sync(struct op *o)
{
    if (o->failed == 0 && !o->hasty && fsync(o->fd) < 0)
        o->failed = -errno;
    fd_close_all(&o->fd, 1);
}

static void put_name(const struct spool *s, struct op *o)
{
    char half[NAME_MAX_BYTES], name[NAME_MAX_BYTES];

    half_name(o->number, half);
    final_name(o->id, name);
    if (o->failed == 0 && renameat(s->dir, half, s->dir, name) < 0)
        o->failed = -errno;
    if (o->failed < 0)
        (void)unlinkat(s->dir, half, 0);
}

static int read_file(int fd, size_t max, struct buf *out)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > max)
        return -EFBIG;
    *out = BUF_INIT((size_t)st.st_size + 1);
    if (buf_reserve(out, (size_t)st.st_size + 1) < 0)
        return -ENOMEM;
    n = fd_read_full(fd, out->p, (size_t)st.st_size);
    if (n < 0)
        return (int)n;
    out->n = (size_t)n;
    return 0;
}

int spool_file_body(const char *id, const char *text, size_t n, struct bytes *ret)
{
    struct json_value v, result, name;
    char quoted[SPOOL_ID_MAX + 3];
    struct err ignored;
    size_t quoted_n = (size_t)snprintf(quoted, sizeof quoted, "\"%s\"", id);

    if (json_parse(text, n, 0, &v, &ignored) < 0 || v.type != JSON_OBJECT ||
        !json_get(v, "execution_id", &name) || !json_get(v, "result", &result))
        return -EBADMSG;
    if (name.n != quoted_n || memcmp(name.p, quoted, name.n) != 0 || result.type != JSON_OBJECT)
        return -EBADMSG;
    *ret = (struct bytes){.p = result.p, .n = result.n};
    return 0;
}

static void read_back(const struct spool *s, struct op *o)
{
    cleanup_close int fd = -1;
    char name[NAME_MAX_BYTES];

    final_name(o->id, name);
    fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    o->failed = fd < 0 ? -errno : read_file(fd, o->file_max, &o->file);
    if (o->failed == 0)
        o->failed = spool_file_body(o->id, o->file.p, o->file.n, &o->body);
}

static void name_change(const struct spool *s, struct op *o)
{
    char name[NAME_MAX_BYTES];

    final_name(o->id, name);
    switch (o->kind) {
    case OP_PUT:
        put_name(s, o);
        break;
    case OP_READ:
        read_back(s, o);
        break;
    case OP_DROP:
        (void)unlinkat(s->dir, name, 0);
        break;
    case OP_REJECT:
        (void)renameat(s->dir, name, s->rejected_dir, name);
        break;
    case OP_FORGET:
        (void)unlinkat(s->rejected_dir, name, 0);
        break;
    }
}

/* A name is there for good only when its directory has been synced. */
static void names_sync(struct spool *s)
{
    struct op *o;
    int r = 0;
    bool needed = false;

    STAILQ_FOREACH(o, &s->batch, link)
    {
        needed |= o->kind == OP_PUT && o->failed == 0 && !o->hasty;
    }
    if (needed && fsync(s->dir) < 0)
        r = -errno;
    STAILQ_FOREACH(o, &s->batch, link)
    {
        if (o->kind == OP_PUT && o->failed == 0 && !o->hasty)
            o->failed = r;
    }
}

void spool_batch_run(struct work *w)
{
    struct spool *s = (struct spool *)w;
    struct op *o;

    STAILQ_FOREACH(o, &s->batch, link)
    {
        if (o->kind == OP_PUT)
            put_write(s, o);
    }
    STAILQ_FOREACH(o, &s->batch, link)
    {
        if (o->kind == OP_PUT)
            put_sync(o);
    }
    STAILQ_FOREACH(o, &s->batch, link)
    {
        name_change(s, o);
    }
    names_sync(s);
}
