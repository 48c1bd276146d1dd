/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/tar_inner.h"

enum {
    OCTAL_11 = 33, /* bits in eleven octal digits */
    OCTAL_7 = 21,
};

static const char types[] = {
    [TAR_FILE] = '0',
    [TAR_DIRECTORY] = '5',
    [TAR_SYMLINK] = '2',
    [TAR_HARDLINK] = '1',
};

size_t tar_padding(uint64_t size)
{
    return (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

/* As many digits as there is room for, and a NUL. */
static void put_octal(char *field, size_t n, uint64_t v)
{
    field[n - 1] = '\0';
    for (size_t i = n - 1; i-- > 0; v /= 8)
        field[i] = (char)('0' + v % 8);
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits. */
static void put_record(struct buf *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, n = rest + 1; /* space, =, newline; a digit */
    char digits[24];

    while ((size_t)snprintf(digits, sizeof digits, "%zu", n) + rest != n)
        n = (size_t)snprintf(digits, sizeof digits, "%zu", n) + rest;
    (void)buf_printf(out, "%s %s=%s\n", digits, key, value);
}

static void put_block(struct buf *out, struct tar_head *h)
{
    unsigned sum;
    int ignored;

    memcpy(h->magic, "ustar", 6);
    memcpy(h->version, "00", 2);
    tar_sums(h, &sum, &ignored);
    put_octal(h->checksum, sizeof h->checksum - 1, sum);
    h->checksum[sizeof h->checksum - 1] = ' ';
    (void)buf_put(out, h, sizeof *h);
}

static void put_zeros(struct buf *out, size_t n)
{
    static const char zeros[TAR_BLOCK];

    (void)buf_put(out, zeros, n);
}

/* The name in two parts, cut at a slash; false when there is no such place. */
static bool split_name(struct tar_head *h, const char *name, size_t n)
{
    size_t from = n > sizeof h->name + 1 ? n - sizeof h->name - 1 : 1;

    if (n <= sizeof h->name) {
        memcpy(h->name, name, n);
        return true;
    }
    for (size_t cut = from; cut + 1 < n && cut <= sizeof h->prefix; cut++)
        if (name[cut] == '/') {
            memcpy(h->prefix, name, cut);
            memcpy(h->name, name + cut + 1, n - cut - 1);
            return true;
        }
    return false;
}

static void put_extended(struct buf *out, struct buf *records)
{
    struct tar_head h = {.name = "PaxHeader", .type = 'x'};

    put_octal(h.mode, sizeof h.mode, 0644);
    put_octal(h.uid, sizeof h.uid, 0);
    put_octal(h.gid, sizeof h.gid, 0);
    put_octal(h.mtime, sizeof h.mtime, 0);
    put_octal(h.size, sizeof h.size, records->n);
    put_block(out, &h);
    (void)buf_put(out, records->p, records->n);
    put_zeros(out, tar_padding(records->n));
}

/* What does not fit into its field is said by a record, and the field is left at zero. */
static void put_numbers(struct tar_head *h, const struct tar_entry *e, struct buf *records)
{
    bool time_fits = e->mtime_s >= 0 && (uint64_t)e->mtime_s >> OCTAL_11 == 0;
    bool size_fits = e->size >> OCTAL_11 == 0;
    char text[32];

    put_octal(h->mode, sizeof h->mode, e->mode & 07777);
    put_octal(h->uid, sizeof h->uid, e->uid >> OCTAL_7 ? 0 : e->uid);
    put_octal(h->gid, sizeof h->gid, e->gid >> OCTAL_7 ? 0 : e->gid);
    put_octal(h->size, sizeof h->size, size_fits ? e->size : 0);
    put_octal(h->mtime, sizeof h->mtime, time_fits ? (uint64_t)e->mtime_s : 0);
    if (!size_fits) {
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)e->size);
        put_record(records, "size", text);
    }
    if (!time_fits) {
        (void)snprintf(text, sizeof text, "%lld", (long long)e->mtime_s);
        put_record(records, "mtime", text);
    }
}

void tar_put_header(struct buf *out, const struct tar_entry *e)
{
    cleanup_with(buf_done) struct buf records = BUF_INIT(TAR_META_MAX);
    cleanup_with(buf_done) struct buf name = BUF_INIT(TAR_META_MAX);
    struct tar_head h = {.type = types[e->kind]};
    size_t link_n = strlen(e->link);

    (void)buf_puts(&name, e->name);
    if (e->kind == TAR_DIRECTORY && name.n > 0 && name.p[name.n - 1] != '/')
        (void)buf_putc(&name, '/');
    if (name.failed || !split_name(&h, name.p, name.n)) {
        memcpy(h.name, "long", 4);
        put_record(&records, "path", name.p ? name.p : "");
    }
    if (link_n <= sizeof h.link)
        memcpy(h.link, e->link, link_n);
    else
        put_record(&records, "linkpath", e->link);
    put_numbers(&h, e, &records);
    if (name.failed || records.failed)
        out->failed = true;
    if (records.n > 0)
        put_extended(out, &records);
    put_block(out, &h);
}
