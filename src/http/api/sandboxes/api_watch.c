/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/sandboxes/{id}/files/watch: what happens in a directory of a sandbox, as events: ready,
 * once, when the watch stands; create, write, remove, rename, chmod; overflow where events were
 * lost. It ends with its client or its sandbox.
 */
#include <string.h>

#include "http/api/api.h"
#include "http/api/sandboxes/entry_json.h"
#include "http/api/sandboxes/files_body.h"
#include "http/api/sandboxes/raw.h"
#include "http/server/sse.h"

enum { EVENT_SLACK = 1024, ESCAPE_FACTOR = 6 };

static const char *const names[] = {
    [FILE_EVENT_STANDS] = "ready",      [FILE_EVENT_CREATE] = "create",
    [FILE_EVENT_WRITE] = "write",       [FILE_EVENT_REMOVE] = "remove",
    [FILE_EVENT_RENAME] = "rename",     [FILE_EVENT_CHMOD] = "chmod",
    [FILE_EVENT_OVERFLOW] = "overflow",
};

static void write_event(struct jw *w, const struct files_call *f, const struct file_event *v)
{
    const struct entry_path path = {f->path, v->name};

    jw_object(w);
    if (v->kind == FILE_EVENT_STANDS) {
        jw_kv_string(w, "path", f->path);
    } else if (v->kind != FILE_EVENT_OVERFLOW) {
        jw_kv_bytes(w, "name", v->name.p, v->name.n);
        jw_key(w, "path");
        entry_write_path(w, &path);
        if (v->entry) {
            jw_key(w, "entry");
            entry_write(w, &path, v->entry);
        }
    }
    jw_object_end(w);
}

static size_t event_max(const struct files_call *f, const struct file_event *v)
{
    const struct entry_path path = {f->path, v->name};

    return EVENT_SLACK + (strlen(f->path) + 2 * v->name.n) * ESCAPE_FACTOR +
           (v->entry ? entry_json_max(&path, v->entry) : 0);
}

static bool on_event(void *user, const struct file_event *v)
{
    struct files_call *f = user;
    struct buf text = BUF_INIT(event_max(f, v));
    struct jw w = JW(&text);
    bool more;

    if (v->kind == FILE_EVENT_STANDS) {
        f->begun = true;
        sse_begin(&f->sse, f->call);
    }
    write_event(&w, f, v);
    more = sse_send(&f->sse, names[v->kind], NULL, text.p ? text.p : "{}", text.p ? text.n : 2);
    buf_done(&text);
    return more;
}

static void on_drain(void *user)
{
    struct files_call *f = user;

    sse_drained(&f->sse);
    files_drained(f);
}

/* The sandbox has ended, or the watch could not be made. */
static void on_ended(void *user, struct file_result *r)
{
    struct files_call *f = user;

    f->filework = NULL;
    http_on_gone(f->call, NULL, NULL);
    http_on_drain(f->call, NULL, NULL);
    if (f->begun)
        sse_end(&f->sse);
    else
        raw_reply_failure(f->call, r);
    files_free(f);
}

void api_files_watch(struct http_call *c)
{
    struct file_order o = {.verb = FILE_WATCH};
    struct persistent *p;
    struct files_call *f = files_begin(c, &files_watch_shape, &p);

    if (!f || !files_path(f, p, &f->body.path, "path", &f->path))
        return;
    o.path = (struct bytes){f->path, strlen(f->path)};
    o.recursive = f->body.recursive;
    o.with_entries = f->body.entries;
    if (!files_start(f, p, &p->inside.watched, &o, on_ended))
        return;
    filework_on_event(f->filework, on_event);
    http_on_drain(c, on_drain, f);
    http_on_gone(c, files_gone, f);
}
