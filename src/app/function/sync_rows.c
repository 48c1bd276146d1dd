/* SPDX-License-Identifier: MIT */
#include "app/function/sync_rows.h"

#include <string.h>

#include "base/jw.h"

enum { ROW_ROOM = 512, ESCAPE_FACTOR = 6 };

/* Rows are added one by one, each makes room for itself. */
static struct jw row_begin(struct buf *rows, const struct change *one)
{
    rows->max = rows->n + ROW_ROOM + ESCAPE_FACTOR * (2 * strlen(one->path) + MOUNT_HOST_MAX);
    return (struct jw){.out = rows, .comma = rows->n > 0};
}

void sync_rows_path(struct buf *rows, const struct change *one)
{
    struct jw w = row_begin(rows, one);

    jw_bytes(&w, one->path, strlen(one->path));
}

void sync_rows_failed(struct sync_rows *r, const struct change *one, const char *error)
{
    struct jw w = row_begin(&r->failed, one);

    jw_object(&w);
    jw_kv_bytes(&w, "path", one->path, strlen(one->path));
    jw_kv_string(&w, "error", error);
    jw_object_end(&w);
}

static void put_real_path(struct jw *w, const struct mount *m, const struct change *one)
{
    const struct mount_dir *d = mount_of(m, one->path);
    struct buf path = BUF_INIT(strlen(one->path) + MOUNT_HOST_MAX + 1);

    if (!d)
        return;
    (void)buf_puts(&path, d->host);
    (void)buf_puts(&path, one->path + strlen(d->inside));
    if (!path.failed)
        jw_kv_bytes(w, "realPath", path.p, path.n);
    buf_done(&path);
}

struct bytes sync_rows_event(struct sync_rows *r, const struct mount *m, const char *event,
                             const struct change *one, const char *error)
{
    size_t before = r->events.n;
    struct jw w = row_begin(&r->events, one);

    jw_object(&w);
    jw_kv_string(&w, "event", event);
    jw_kv_bytes(&w, "path", one->path, strlen(one->path));
    jw_kv_string(&w, "type", change_operation(one->type));
    jw_kv_int(&w, "size", (int64_t)one->size);
    if (error) {
        put_real_path(&w, m, one);
        jw_kv_bool(&w, "success", !*error);
        if (*error)
            jw_kv_string(&w, "error", error);
    }
    jw_object_end(&w);
    if (r->events.failed)
        return (struct bytes){0};
    before += before > 0; /* the comma */
    return (struct bytes){r->events.p + before, r->events.n - before};
}

static void put_list(struct jw *w, const char *key, const struct buf *rows)
{
    jw_key(w, key);
    jw_array(w);
    (void)buf_put(w->out, rows->p ? rows->p : "", rows->n);
    jw_array_end(w);
}

void sync_rows_put(const struct sync_rows *r, const struct buf *synced, bool rolled_back,
                   struct buf *out)
{
    struct jw w = JW(out);

    *out = BUF_INIT(synced->n + r->failed.n + r->skipped.n + r->events.n + ROW_ROOM);
    jw_object(&w);
    put_list(&w, "synced", synced);
    put_list(&w, "failed", &r->failed);
    put_list(&w, "skipped", &r->skipped);
    jw_kv_bool(&w, "rolledBack", rolled_back);
    put_list(&w, "events", &r->events);
    jw_object_end(&w);
}

void sync_rows_done(struct sync_rows *r)
{
    buf_done(&r->failed);
    buf_done(&r->skipped);
    buf_done(&r->events);
}
