/* SPDX-License-Identifier: MIT */
#include "http/api/sandboxes/entry_json.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/utf8.h"

enum { ESCAPE_FACTOR = 6, MODE_TEXT = 8 };

void entry_path_clean(char *path)
{
    char *to = path;

    for (const char *from = path; *from;) {
        size_t n = strcspn(from, "/");

        if (n > 0 && !(n == 1 && *from == '.')) {
            *to++ = '/';
            memmove(to, from, n);
            to += n;
        }
        from += n + (from[n] == '/');
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

struct bytes entry_name(const struct entry_path *p)
{
    struct bytes whole =
        p->rest.n > 0 || !p->base ? p->rest : (struct bytes){p->base, strlen(p->base)};
    size_t end = whole.n, from;

    while (end > 1 && whole.p[end - 1] == '/')
        end--;
    from = end;
    while (from > 0 && whole.p[from - 1] != '/')
        from--;
    return from == end ? (struct bytes){"/", 1} : (struct bytes){whole.p + from, end - from};
}

/* Does a slash belong between the two? */
static bool joins(const struct entry_path *p)
{
    return p->base && p->rest.n > 0 && strcmp(p->base, "/") != 0;
}

static size_t path_length(const struct entry_path *p)
{
    return (p->base ? strlen(p->base) : 0) + joins(p) + p->rest.n;
}

/* The whole path in memory of its own. */
static void put_path(struct buf *out, const struct entry_path *p)
{
    if (p->base)
        (void)buf_puts(out, p->base);
    if (joins(p))
        (void)buf_putc(out, '/');
    (void)buf_put(out, p->rest.p ? p->rest.p : "", p->rest.n);
}

void entry_write_path(struct jw *w, const struct entry_path *p)
{
    cleanup_with(buf_done) struct buf whole = BUF_INIT(path_length(p) + 1);

    put_path(&whole, p);
    if (whole.failed)
        w->out->failed = true;
    jw_bytes(w, whole.p ? whole.p : "", whole.n);
}

/* A path that JSON cannot say is told a second time, so that it can be asked for. */
static void write_bytes_of_path(struct jw *w, const struct entry_path *p)
{
    cleanup_with(buf_done) struct buf whole = BUF_INIT(path_length(p) + 1);
    cleanup_with(buf_done) struct buf text = BUF_INIT(BASE64_LENGTH(path_length(p)) + 1);

    put_path(&whole, p);
    if (whole.failed || utf8_is_valid(whole.p ? whole.p : "", whole.n))
        return;
    if (base64_encode(whole.p, whole.n, &text) == 0)
        jw_kv_bytes(w, "path_base64", text.p, text.n);
}

void entry_permissions(uint32_t mode, char link, char out[ENTRY_PERMISSIONS])
{
    static const char letters[] = "rwxrwxrwx";
    char kind = S_ISDIR(mode)    ? 'd'
                : S_ISLNK(mode)  ? link
                : S_ISFIFO(mode) ? 'p'
                : S_ISSOCK(mode) ? 's'
                : S_ISCHR(mode)  ? 'c'
                : S_ISBLK(mode)  ? 'b'
                                 : '-';

    out[0] = kind;
    for (unsigned i = 0; i < 9; i++)
        out[1 + i] = mode & (0400u >> i) ? letters[i] : '-';
    if (mode & S_ISUID)
        out[3] = mode & S_IXUSR ? 's' : 'S';
    if (mode & S_ISGID)
        out[6] = mode & S_IXGRP ? 's' : 'S';
    if (mode & S_ISVTX)
        out[9] = mode & S_IXOTH ? 't' : 'T';
    out[ENTRY_PERMISSIONS - 1] = '\0';
}

static const char *type_of(uint32_t mode)
{
    return S_ISREG(mode)    ? "file"
           : S_ISDIR(mode)  ? "directory"
           : S_ISLNK(mode)  ? "symlink"
           : S_ISFIFO(mode) ? "fifo"
           : S_ISSOCK(mode) ? "socket"
                            : "device";
}

static void write_link(struct jw *w, const struct file_entry *e)
{
    jw_kv_bytes(w, "link", e->link.p, e->link.n);
    jw_key(w, "target");
    if (e->target.n > 0)
        jw_bytes(w, e->target.p, e->target.n);
    else
        jw_null(w);
    jw_kv_string(w, "target_type", e->target_mode ? type_of(e->target_mode) : NULL);
}

static void write_metadata(struct jw *w, const struct file_entry *e)
{
    const char *p = e->metadata.p, *end = p + e->metadata.n;

    jw_key(w, "metadata");
    jw_object(w);
    while (p < end) {
        const char *value = p + strlen(p) + 1;

        if (value >= end)
            break;
        jw_kv_string(w, p, value);
        p = value + strlen(value) + 1;
    }
    jw_object_end(w);
}

void entry_write(struct jw *w, const struct entry_path *p, const struct file_entry *e)
{
    struct bytes name = entry_name(p);
    char permissions[ENTRY_PERMISSIONS], mode[MODE_TEXT], time[CLOCK_ISO_MAX];

    entry_permissions(e->mode, 'l', permissions);
    (void)snprintf(mode, sizeof mode, "%04o", e->mode & 07777);
    jw_object(w);
    jw_kv_bytes(w, "name", name.p, name.n);
    jw_key(w, "path");
    entry_write_path(w, p);
    write_bytes_of_path(w, p);
    jw_kv_string(w, "type", type_of(e->mode));
    jw_kv_int(w, "size", (int64_t)e->size);
    jw_kv_string(w, "mode", mode);
    jw_kv_string(w, "permissions", permissions);
    jw_kv_string(w, "owner", e->owner);
    jw_kv_string(w, "group", e->group);
    jw_kv_int(w, "uid", e->uid);
    jw_kv_int(w, "gid", e->gid);
    jw_kv_string(w, "modified_at", clock_iso_at(e->modified.s, e->modified.ns, time));
    jw_kv_string(w, "accessed_at", clock_iso_at(e->accessed.s, e->accessed.ns, time));
    jw_kv_string(w, "changed_at", clock_iso_at(e->changed.s, e->changed.ns, time));
    if (S_ISLNK(e->mode))
        write_link(w, e);
    if (e->metadata.n > 0)
        write_metadata(w, e);
    jw_object_end(w);
}

size_t entry_json_max(const struct entry_path *p, const struct file_entry *e)
{
    return ENTRY_NAME_SLACK +
           (path_length(p) * 3 + e->link.n + e->target.n + e->metadata.n * 2) * ESCAPE_FACTOR;
}
