/* SPDX-License-Identifier: MIT */
#include "base/tar.h"

#include <stdio.h>
#include <string.h>

#include "base/tar_inner.h"

int tar_refuse(struct tar_reader *r, enum tar_fault fault)
{
    r->fault = fault;
    return -1;
}

/* A complete extended header. */
static int on_meta(struct tar_reader *r)
{
    const char *p = r->meta.p ? r->meta.p : "";
    size_t n = r->meta.n;

    if (r->meta_type == 'x' || r->meta_type == 'X')
        return tar_pax_records(r, p, n);
    n = strnlen(p, n);
    return r->meta_type == 'L' ? tar_pax_path(r, p, n) : tar_pax_link(r, p, n);
}

/* ---- headers ---- */

static void forget_meta(struct tar_reader *r)
{
    r->has_name = r->has_link = r->has_size = r->has_mtime = false;
}

/* Where the header itself has the names: filled up with NULs, or without any. */
static void head_names(struct tar_reader *r, const struct tar_head *h)
{
    size_t prefix = memcmp(h->magic, "ustar", 6) == 0 ? strnlen(h->prefix, sizeof h->prefix) : 0;
    size_t name = strnlen(h->name, sizeof h->name), link = strnlen(h->link, sizeof h->link);
    size_t at = 0;

    if (!r->has_name) {
        if (prefix > 0) {
            memcpy(r->raw, h->prefix, prefix);
            r->raw[prefix] = '/';
            at = prefix + 1;
        }
        memcpy(r->raw + at, h->name, name);
        r->raw[at + name] = '\0';
    }
    if (!r->has_link) {
        memcpy(r->raw_link, h->link, link);
        r->raw_link[link] = '\0';
    }
}

static enum tar_fault check_names(struct tar_reader *r, struct tar_entry *e)
{
    unsigned depth = 0, ignored;
    enum tar_fault f = tar_clean_name(r->raw, r->name, &depth);

    if (f == TAR_FINE && depth > r->limits.depth)
        f = TAR_DEEP;
    if (f == TAR_FINE && depth == 0 && e->kind != TAR_DIRECTORY)
        f = TAR_NAME_EMPTY;
    e->name = r->name;
    e->link = "";
    if (f == TAR_FINE && e->kind == TAR_HARDLINK) {
        f = tar_clean_name(r->raw_link, r->link, &ignored);
        e->link = r->link;
    } else if (f == TAR_FINE && e->kind == TAR_SYMLINK) {
        f = r->raw_link[0] ? TAR_FINE : TAR_NAME_EMPTY;
        e->link = r->raw_link;
    }
    return f;
}

static enum tar_fault kind_of(const struct tar_reader *r, char type, enum tar_kind *ret)
{
    size_t n = strlen(r->raw);

    switch (type) {
    case '0':
    case '\0':
    case '7':
        /* Programs older than the type of directories end their names like this. */
        *ret = n > 0 && r->raw[n - 1] == '/' ? TAR_DIRECTORY : TAR_FILE;
        return TAR_FINE;
    case '1':
        *ret = TAR_HARDLINK;
        return TAR_FINE;
    case '2':
        *ret = TAR_SYMLINK;
        return TAR_FINE;
    case '5':
        *ret = TAR_DIRECTORY;
        return TAR_FINE;
    case '3':
    case '4':
    case '6':
        return TAR_SPECIAL;
    default:
        return TAR_TYPE;
    }
}

/* An extended header speaks of the entry, not of other extended headers before it. */
static bool head_numbers(const struct tar_reader *r, const struct tar_head *h, bool meta,
                         struct tar_entry *e)
{
    int64_t mode, size, mtime, uid, gid;

    if (!tar_read_number(h->mode, sizeof h->mode, &mode) ||
        !tar_read_number(h->size, sizeof h->size, &size) || size < 0 ||
        !tar_read_number(h->mtime, sizeof h->mtime, &mtime) || mtime > TAR_TIME_MAX ||
        mtime < -TAR_TIME_MAX || !tar_read_number(h->uid, sizeof h->uid, &uid) ||
        !tar_read_number(h->gid, sizeof h->gid, &gid))
        return false;
    e->mode = (uint32_t)mode & 0777;
    e->size = r->has_size && !meta ? r->size : (uint64_t)size;
    e->mtime_s = r->has_mtime ? r->mtime_s : mtime;
    e->mtime_ns = r->has_mtime ? r->mtime_ns : 0;
    e->uid = uid < 0 || uid > UINT32_MAX ? 0 : (uint32_t)uid;
    e->gid = gid < 0 || gid > UINT32_MAX ? 0 : (uint32_t)gid;
    return true;
}

/* What follows the header, and how much of it. */
static void expect(struct tar_reader *r, enum tar_state state, uint64_t size)
{
    r->state = state;
    r->left = size;
    r->pad = tar_padding(size);
}

static int on_entry(struct tar_reader *r, const struct tar_head *h, struct tar_entry *e)
{
    enum tar_fault f;

    head_names(r, h);
    f = kind_of(r, h->type, &e->kind);
    if (f == TAR_FINE)
        f = check_names(r, e);
    if (f == TAR_FINE && e->size > 0 && e->kind != TAR_FILE)
        f = TAR_CONTENT;
    if (f == TAR_FINE && ++r->entries > r->limits.entries)
        f = TAR_MANY;
    if (f != TAR_FINE) {
        (void)snprintf(r->name, sizeof r->name, "%s", r->raw);
        return tar_refuse(r, f);
    }
    forget_meta(r);
    if (r->sink.entry(r->sink.user, e) != 0)
        return -1;
    if (e->kind == TAR_FILE && e->size == 0)
        return r->sink.entry_end(r->sink.user) != 0 ? -1 : 0;
    expect(r, e->kind == TAR_FILE ? TAR_DATA : TAR_HEAD, e->size);
    return 0;
}

static int on_head(struct tar_reader *r)
{
    static const char zeros[TAR_BLOCK];
    struct tar_entry e = {0};
    struct tar_head h;
    bool meta;

    if (memcmp(r->block, zeros, TAR_BLOCK) == 0) {
        r->state = TAR_END;
        return 0;
    }
    memcpy(&h, r->block, sizeof h);
    meta = h.type && strchr("xXLKg", h.type);
    r->head_at = r->at - TAR_BLOCK;
    r->name[0] = '\0';
    if (!tar_sum_is_right(&h))
        return tar_refuse(r, TAR_CHECKSUM);
    if (!head_numbers(r, &h, meta, &e))
        return tar_refuse(r, TAR_NUMBER);
    if (e.size > r->limits.bytes)
        return tar_refuse(r, TAR_LARGE);
    if (h.type == 'g') { /* about all that follows: nothing in it matters here */
        expect(r, TAR_SKIP, e.size);
        return 0;
    }
    if (!meta)
        return on_entry(r, &h, &e);
    if (e.size > TAR_META_MAX)
        return tar_refuse(r, h.type == 'x' || h.type == 'X' ? TAR_EXTENDED : TAR_NAME_LONG);
    r->meta_type = h.type;
    buf_clear(&r->meta);
    expect(r, TAR_META, e.size);
    return 0;
}

/* ---- bytes ---- */

static size_t take_head(struct tar_reader *r, const char *p, size_t n, int *ret)
{
    size_t k = TAR_BLOCK - r->block_n < n ? TAR_BLOCK - r->block_n : n;

    memcpy(r->block + r->block_n, p, k);
    r->block_n += k;
    r->at += k;
    if (r->block_n == TAR_BLOCK) {
        r->block_n = 0;
        *ret = on_head(r);
    }
    return k;
}

/* The last byte of what a header announced; padding follows. */
static int on_last(struct tar_reader *r)
{
    enum tar_state was = r->state;
    uint64_t pad = r->pad;

    expect(r, pad ? TAR_SKIP : TAR_HEAD, pad);
    r->pad = 0;
    if (was == TAR_META)
        return on_meta(r);
    return was == TAR_DATA && r->sink.entry_end(r->sink.user) != 0 ? -1 : 0;
}

static size_t take_rest(struct tar_reader *r, const char *p, size_t n, int *ret)
{
    size_t k = r->left < n ? (size_t)r->left : n;

    r->at += k;
    r->left -= k;
    if (r->state == TAR_META && buf_put(&r->meta, p, k) < 0)
        *ret = tar_refuse(r, TAR_MEMORY);
    else if (r->state == TAR_DATA && k > 0 && r->sink.data(r->sink.user, p, k) != 0)
        *ret = -1;
    else if (r->left == 0)
        *ret = on_last(r);
    return k;
}

void tar_open(struct tar_reader *r, const struct tar_limits *limits, const struct tar_sink *sink)
{
    *r = (struct tar_reader){.limits = *limits, .sink = *sink, .meta = BUF_INIT(TAR_META_MAX)};
}

void tar_close(struct tar_reader *r)
{
    buf_done(&r->meta);
}

int tar_feed(struct tar_reader *r, const char *p, size_t n)
{
    int result = 0;

    while (n > 0 && result == 0) {
        uint64_t room = r->limits.bytes - r->at;
        size_t k = n < room ? n : (size_t)room;

        if (r->state == TAR_END)
            return 0;
        if (room == 0)
            return tar_refuse(r, TAR_LARGE);
        k = r->state == TAR_HEAD ? take_head(r, p, k, &result) : take_rest(r, p, k, &result);
        p += k;
        n -= k;
    }
    return result;
}

int tar_finish(struct tar_reader *r)
{
    if (r->state == TAR_END)
        return 0;
    r->head_at = r->at;
    if (r->state != TAR_HEAD || r->block_n > 0)
        return tar_refuse(r, TAR_CUT);
    r->name[0] = '\0';
    return tar_refuse(r, TAR_NO_END);
}
