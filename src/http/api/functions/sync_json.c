/* SPDX-License-Identifier: MIT */
/* What became of changes on their way back to their mounts, as JSON. */
#include <string.h>

#include "http/api/functions/function_json.h"

enum { ROW_ROOM = 512, ESCAPE_FACTOR = 6 };

const char *sync_event_name(const struct sync_event *event)
{
    static const char *const names[] = {"beforeSync", "afterSync", "syncError",
                                        "skipped",    "aborted",   "permissionDenied"};

    _Static_assert(ARRAY_LEN(names) == SYNC_WHAT_COUNT, "every event has a name");
    return names[event->what];
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

static void put_event(struct jw *w, const struct mount *m, const struct sync_event *event)
{
    const struct change *one = event->change;
    const char *error = event->error;

    jw_object(w);
    jw_kv_string(w, "event", sync_event_name(event));
    jw_kv_bytes(w, "path", one->path, strlen(one->path));
    jw_kv_string(w, "type", change_operation(one->type));
    jw_kv_int(w, "size", (int64_t)one->size);
    if (error) {
        put_real_path(w, m, one);
        jw_kv_bool(w, "success", !*error);
        if (*error)
            jw_kv_string(w, "error", error);
    }
    jw_object_end(w);
}

static size_t room_of(const struct change *one)
{
    return ROW_ROOM + ESCAPE_FACTOR * (2 * strlen(one->path) + MOUNT_HOST_MAX);
}

void sync_event_json(const struct mount *m, const struct sync_event *event, struct buf *out)
{
    struct jw w = JW(out);

    *out = BUF_INIT(room_of(event->change));
    put_event(&w, m, event);
}

size_t sync_report_room(const struct sync_report *r)
{
    size_t room = ROW_ROOM;

    for (size_t i = 0; i < r->events_n; i++)
        room += 2 * room_of(r->events[i].change);
    for (size_t i = 0; i < r->synced_n; i++)
        room += room_of(r->synced[i]);
    return room;
}

static void put_path(struct jw *w, const struct change *one)
{
    jw_bytes(w, one->path, strlen(one->path));
}

static void put_failed(struct jw *w, const struct sync_event *event)
{
    jw_object(w);
    jw_kv_bytes(w, "path", event->change->path, strlen(event->change->path));
    jw_kv_string(w, "error", event->error);
    jw_object_end(w);
}

void sync_report_json(const struct sync_report *r, struct buf *out)
{
    struct jw w = JW(out);

    jw_object(&w);
    jw_key(&w, "synced");
    jw_array(&w);
    for (size_t i = 0; i < r->synced_n; i++)
        put_path(&w, r->synced[i]);
    jw_array_end(&w);
    jw_key(&w, "failed");
    jw_array(&w);
    for (size_t i = 0; i < r->events_n; i++)
        if (r->events[i].what == SYNC_ERROR)
            put_failed(&w, &r->events[i]);
    jw_array_end(&w);
    jw_key(&w, "skipped");
    jw_array(&w);
    for (size_t i = 0; i < r->events_n; i++)
        if (r->events[i].what == SYNC_SKIPPED)
            put_path(&w, r->events[i].change);
    jw_array_end(&w);
    jw_kv_bool(&w, "rolledBack", r->rolled_back);
    jw_key(&w, "events");
    jw_array(&w);
    for (size_t i = 0; i < r->events_n; i++)
        if (!r->events[i].untold)
            put_event(&w, r->mount, &r->events[i]);
    jw_array_end(&w);
    jw_object_end(&w);
}
