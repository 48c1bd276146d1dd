/* SPDX-License-Identifier: MIT */
/*
 * An archive, whole and in small pieces: both say the same. Every name told is relative and clean,
 * content is as long as announced, and a header written from an entry is read as that entry.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tar_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENTRIES_MAX = 1000, DEPTH_MAX = 20, BYTES_MAX = 1 << 20, PIECE = 7 };

/* What an archive was understood to say. */
struct told {
    uint64_t entries, bytes, left, sum;
    bool open;
};

static const struct tar_limits limits = {ENTRIES_MAX, BYTES_MAX, DEPTH_MAX};

static void add(struct told *t, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        t->sum = t->sum * 31 + ((const unsigned char *)p)[i];
}

static void check_name(const char *name)
{
    size_t n = strlen(name);

    assert(n > 0 && n < TAR_NAME_MAX && name[0] != '/' && name[n - 1] != '/');
    assert(strcmp(name, "..") != 0 && strncmp(name, "../", 3) != 0 && !strstr(name, "/../"));
    assert(!strstr(name, "//") && !strstr(name, "/./") && strncmp(name, "./", 2) != 0);
    assert(n < 3 || strcmp(name + n - 3, "/..") != 0);
}

/* ---- an entry that was written again ---- */

static int same_entry(void *user, const struct tar_entry *e)
{
    const struct tar_entry *was = user;

    assert(e->kind == was->kind && strcmp(e->name, was->name) == 0);
    assert(strcmp(e->link, was->link) == 0 && e->size == was->size && e->mode == was->mode);
    assert(e->mtime_s == was->mtime_s);
    return e->size > 0; /* its content is not there */
}

static int no_data(void *user, const char *p, size_t n)
{
    (void)user, (void)p, (void)n;
    return 0;
}

static int no_end(void *user)
{
    (void)user;
    return 0;
}

static void check_again(const struct tar_entry *e)
{
    struct tar_entry copy = *e;
    struct tar_reader *r = malloc(sizeof *r);
    struct buf out = BUF_INIT(TAR_META_MAX * 4);
    const struct tar_sink sink = {same_entry, no_data, no_end, &copy};
    int result;

    if (!r)
        abort();
    tar_put_header(&out, e);
    assert(!out.failed && out.n % TAR_BLOCK == 0);
    tar_open(r, &limits, &sink);
    result = tar_feed(r, out.p, out.n);
    assert(r->fault == TAR_FINE && r->entries == 1 && (result < 0) == (e->size > 0));
    tar_close(r);
    buf_done(&out);
    free(r);
}

/* ---- the archive itself ---- */

static int on_entry(void *user, const struct tar_entry *e)
{
    struct told *t = user;

    assert(!t->open);
    check_name(e->name);
    if (e->kind == TAR_HARDLINK)
        check_name(e->link);
    assert(e->kind == TAR_FILE || e->size == 0);
    assert(e->mode <= 0777 && e->mtime_ns < 1000000000 && ++t->entries <= ENTRIES_MAX);
    check_again(e);
    add(t, e->name, strlen(e->name) + 1);
    add(t, e->link, strlen(e->link) + 1);
    t->open = e->kind == TAR_FILE;
    t->left = e->size;
    return 0;
}

static int on_data(void *user, const char *p, size_t n)
{
    struct told *t = user;

    assert(t->open && n > 0 && n <= t->left);
    t->left -= n;
    t->bytes += n;
    add(t, p, n);
    return 0;
}

static int on_entry_end(void *user)
{
    struct told *t = user;

    assert(t->open && t->left == 0);
    t->open = false;
    return 0;
}

static enum tar_fault read_in_pieces(const char *p, size_t n, size_t piece, struct told *t)
{
    struct tar_reader *r = malloc(sizeof *r);
    const struct tar_sink sink = {on_entry, on_data, on_entry_end, t};
    enum tar_fault fault;
    int result = 0;

    if (!r)
        abort();
    tar_open(r, &limits, &sink);
    for (size_t at = 0; at < n && result == 0; at += piece)
        result = tar_feed(r, p + at, n - at < piece ? n - at : piece);
    if (result == 0)
        result = tar_finish(r);
    fault = r->fault;
    assert((result < 0) == (fault != TAR_FINE) && tar_fault_words(fault)[0]);
    tar_close(r);
    free(r);
    return fault;
}

/* No mutation gets a checksum right: every block that is not all zeros is given one. */
static void repair(char *p, size_t n)
{
    static const char zeros[TAR_BLOCK];

    for (size_t at = 0; at + TAR_BLOCK <= n; at += TAR_BLOCK) {
        struct tar_head h;
        unsigned sum;
        int ignored;

        memcpy(&h, p + at, sizeof h);
        if (memcmp(&h, zeros, sizeof h) == 0)
            continue;
        tar_sums(&h, &sum, &ignored);
        (void)snprintf(h.checksum, sizeof h.checksum, "%06o", sum & 0777777);
        memcpy(p + at, &h, sizeof h);
    }
}

static void both_ways(const char *p, size_t size)
{
    struct told whole = {0}, pieces = {0};
    enum tar_fault a = read_in_pieces(p, size, size + 1, &whole);
    enum tar_fault b = read_in_pieces(p, size, PIECE, &pieces);

    assert(a == b && whole.entries == pieces.entries && whole.bytes == pieces.bytes);
    assert(whole.sum == pieces.sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);

    if (!copy)
        abort();
    both_ways((const char *)data, size);
    memcpy(copy, data, size);
    repair(copy, size);
    both_ways(copy, size);
    free(copy);
    return 0;
}
