/* SPDX-License-Identifier: MIT */
/*
 * filesystem.Filesystem: what is in a sandbox's file system, and what happens there.
 *
 * ListDir is unary and still sent as it is made, no faster than its client reads; a list that fails
 * after it has begun is broken off. Events that were lost end a stream with data_loss; a watcher
 * that is asked tells the same once, and goes on.
 */
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/sandbox/watchers.h"
#include "http/api/e2b/connect.h"
#include "http/api/e2b/e2b.h"
#include "http/api/e2b/envd_entry.h"
#include "http/api/koyeb/koyeb.h"

enum {
    EVENT_SLACK = 1024,
    ESCAPE_FACTOR = 6,
    LIST_MAX = 1000 * 1000, /* entries of one answer */
};

struct fs_body {
    struct bytes path, source, destination, watcher;
    int64_t depth;
    bool recursive, with_entries, network;
};

/* clang-format off */
#define AT(member) offsetof(struct fs_body, member)
static const struct shape_field path_fields[] = {
    {"path", SHAPE_STRING, 0, AT(path)},
};
static const struct shape_field move_fields[] = {
    {"source", SHAPE_STRING, 0, AT(source)},
    {"destination", SHAPE_STRING, 0, AT(destination)},
};
static const struct shape_field list_fields[] = {
    {"path", SHAPE_STRING, 0, AT(path)},
    {"depth", SHAPE_INT, 0, AT(depth)},
};
static const struct shape_field watch_fields[] = {
    {"path", SHAPE_STRING, 0, AT(path)},
    {"recursive", SHAPE_BOOL, 0, AT(recursive)},
    {"includeEntry", SHAPE_BOOL, 0, AT(with_entries)},
    {"allowNetworkMounts", SHAPE_BOOL, 0, AT(network)},
};
static const struct shape_field watcher_fields[] = {
    {"watcherId", SHAPE_STRING, 0, AT(watcher)},
};
#define SHAPE(fields) {fields, ARRAY_LEN(fields), SHAPE_NULLS | SHAPE_OPEN, NULL}
static const struct shape path_shape = SHAPE(path_fields), move_shape = SHAPE(move_fields),
    list_shape = SHAPE(list_fields), watch_shape = SHAPE(watch_fields),
    watcher_shape = SHAPE(watcher_fields);
/* clang-format on */

/* One call being carried out. */
struct fs_call {
    struct activity activity;
    struct http_call *call;
    struct persistent *home; /* borrowed: the activity holds it */
    struct filework *filework;
    struct fs_body body;
    struct shaping shaping; /* owned: what the body points into */
    char user[ENVD_USER_MAX];
    char *path, *second; /* owned: absolute */
    struct buf out;      /* of one entry */
    uint64_t told;
    bool begun; /* the answer is */
    struct connect_stream stream;
    struct event later; /* of a stream that ended by itself: frees it */
};

static void fs_free(struct fs_call *f)
{
    activity_end(&f->activity);
    filework_free(f->filework);
    if (f->stream.on) {
        connect_done(&f->stream);
        (void)event_del(&f->later);
    }
    shaping_done(&f->shaping);
    free(f->path);
    free(f->second);
    buf_done(&f->out);
    free(f);
}

static void fs_drop(struct activity *a)
{
    fs_free((struct fs_call *)((char *)a - offsetof(struct fs_call, activity)));
}

/* What changes nothing ends with its client. */
static void on_gone(void *user)
{
    fs_free(user);
}

/* NULL: answered. */
static struct fs_call *fs_begin(struct http_call *c, const struct shape *shape)
{
    struct persistent *p = e2b_sandbox(c);
    struct fs_call *f = p ? calloc(1, sizeof *f) : NULL;

    if (!p)
        return NULL;
    if (!f) {
        connect_refuse(c, CONNECT_UNAVAILABLE, "no memory for a request");
        return NULL;
    }
    f->call = c;
    f->home = p;
    if (!envd_user(c, f->user))
        connect_refuse(c, CONNECT_UNAUTHENTICATED, "there is no user '%.64s'", f->user);
    else if (connect_decode(c, shape, &f->body, &f->shaping))
        return f;
    fs_free(f);
    return NULL;
}

/* False: answered, freed. */
static bool take_path(struct fs_call *f, const struct bytes *path, char **ret)
{
    struct err e;

    if (envd_path(f->home, f->user, path->p, path->n, ret, &e) == 0)
        return true;
    connect_refuse_err(f->call, &e);
    fs_free(f);
    return false;
}

static struct bytes view(const char *text)
{
    return (struct bytes){text, text ? strlen(text) : 0};
}

/* False: answered, freed. */
static bool fs_start(struct fs_call *f, struct file_order *o, const struct file_home *where,
                     filework_fn *done)
{
    struct err e;

    o->path = view(f->path);
    o->second = view(f->second);
    if (filework_start(where, o, done, f, &f->filework, &e) == 0) {
        activity_begin(f->home, &f->activity, fs_drop);
        return true;
    }
    connect_refuse_err(f->call, &e);
    fs_free(f);
    return false;
}

/* ---- errors ---- */

/* clang-format off */
static const struct {
    int sys;
    enum connect_code code;
} codes[] = {
    {ENOENT,       CONNECT_NOT_FOUND},
    {EEXIST,       CONNECT_ALREADY_EXISTS},
    {ENOTDIR,      CONNECT_INVALID_ARGUMENT},
    {EISDIR,       CONNECT_INVALID_ARGUMENT},
    {EINVAL,       CONNECT_INVALID_ARGUMENT},
    {ELOOP,        CONNECT_INVALID_ARGUMENT},
    {ENAMETOOLONG, CONNECT_INVALID_ARGUMENT},
    {EACCES,       CONNECT_PERMISSION_DENIED},
    {EPERM,        CONNECT_PERMISSION_DENIED},
    {EROFS,        CONNECT_PERMISSION_DENIED},
    {ENOTEMPTY,    CONNECT_FAILED_PRECONDITION},
    {EBUSY,        CONNECT_FAILED_PRECONDITION},
    {ENOSPC,       CONNECT_RESOURCE_EXHAUSTED},
    {EDQUOT,       CONNECT_RESOURCE_EXHAUSTED},
    {EMFILE,       CONNECT_RESOURCE_EXHAUSTED},
    {FILE_BUSY,    CONNECT_RESOURCE_EXHAUSTED},
    {FILE_ENDED,   CONNECT_UNAVAILABLE},
};
/* clang-format on */

static enum connect_code code_of(int sys)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].sys == sys)
            return codes[i].code;
    return CONNECT_INTERNAL;
}

static void refuse(struct http_call *c, const struct file_result *r)
{
    char words[128] = "the sandbox has ended";

    if (r->sys > 0)
        koyeb_sys_words(r->sys, words);
    else if (r->sys == FILE_BUSY)
        (void)snprintf(words, sizeof words, "the sandbox has no place for another request");
    connect_refuse(c, code_of(r->sys), "%s %.400s: %s", r->op, r->path, words);
}

/* ---- one entry ---- */

static bool on_entry(void *user, const struct file_entry *e)
{
    struct fs_call *f = user;
    const struct entry_path path = {NULL, e->path};
    struct jw w = JW(&f->out);

    buf_done(&f->out);
    f->out = BUF_INIT(entry_json_max(&path, e));
    jw_object(&w);
    jw_key(&w, "entry");
    envd_write_entry(&w, &path, e);
    jw_object_end(&w);
    f->told = 1;
    return true;
}

static void on_told(void *user, struct file_result *r)
{
    struct fs_call *f = user;

    f->filework = NULL;
    http_on_gone(f->call, NULL, NULL);
    if (r->sys == 0 && f->told == 0) {
        r->sys = ENOENT; /* it is gone already */
        r->op = "stat";
        r->path = f->second ? f->second : f->path;
    }
    if (r->sys)
        refuse(f->call, r);
    else
        connect_reply(f->call, &f->out);
    fs_free(f);
}

static void on_stat(void *user, struct file_result *r)
{
    if (r->sys == ENOTDIR)
        r->sys = ENOENT; /* there is nothing below a file */
    on_told(user, r);
}

void e2b_fs_stat(struct http_call *c)
{
    struct file_order o = {.verb = FILE_LOOK};
    struct fs_call *f = fs_begin(c, &path_shape);

    if (!f || !take_path(f, &f->body.path, &f->path) ||
        !fs_start(f, &o, &f->home->inside.files, on_stat))
        return;
    filework_on_entry(f->filework, on_entry);
    http_on_gone(c, on_gone, f);
}

void e2b_fs_make_dir(struct http_call *c)
{
    struct file_order o = {.verb = FILE_MKDIR, .told = true};
    struct fs_call *f = fs_begin(c, &path_shape);

    if (f && take_path(f, &f->body.path, &f->path) &&
        fs_start(f, &o, &f->home->inside.files, on_told))
        filework_on_entry(f->filework, on_entry);
}

void e2b_fs_move(struct http_call *c)
{
    struct file_order o = {.verb = FILE_MOVE, .replace = true};
    struct fs_call *f = fs_begin(c, &move_shape);

    if (f && (f->body.source.n == 0 || f->body.destination.n == 0)) {
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "source or destination is missing");
        fs_free(f);
        return;
    }
    if (f && take_path(f, &f->body.source, &f->path) &&
        take_path(f, &f->body.destination, &f->second) &&
        fs_start(f, &o, &f->home->inside.files, on_told))
        filework_on_entry(f->filework, on_entry);
}

static void on_removed(void *user, struct file_result *r)
{
    struct fs_call *f = user;

    f->filework = NULL;
    if (r->sys)
        refuse(f->call, r);
    else
        connect_reply_empty(f->call);
    fs_free(f);
}

void e2b_fs_remove(struct http_call *c)
{
    struct file_order o = {.verb = FILE_REMOVE_ALL};
    struct fs_call *f = fs_begin(c, &path_shape);

    if (f && f->body.path.n == 0) {
        connect_refuse(c, CONNECT_INVALID_ARGUMENT, "path is missing");
        fs_free(f);
        return;
    }
    if (f && take_path(f, &f->body.path, &f->path))
        (void)fs_start(f, &o, &f->home->inside.files, on_removed);
}

/* ---- lists ---- */

static void begin_list(struct fs_call *f)
{
    if (f->begun)
        return;
    f->begun = true;
    http_stream_begin(f->call, 200, API_JSON);
    (void)http_stream_write(f->call, "{\"entries\":[", 12);
}

static bool on_listed(void *user, const struct file_entry *e)
{
    struct fs_call *f = user;
    const struct entry_path path = {f->path, e->path};
    struct buf text = BUF_INIT(entry_json_max(&path, e) + 1);
    struct jw w = JW(&text);
    size_t queued;

    begin_list(f);
    if (f->told++ > 0)
        (void)buf_putc(&text, ',');
    envd_write_entry(&w, &path, e);
    queued = http_stream_write(f->call, text.p ? text.p : "", text.n);
    buf_done(&text);
    return queued < HTTP_STREAM_HIGH;
}

static void on_drain(void *user)
{
    struct fs_call *f = user;

    if (f->filework)
        filework_resume(f->filework);
}

static void on_list_end(void *user, struct file_result *r)
{
    struct fs_call *f = user;

    f->filework = NULL;
    http_on_gone(f->call, NULL, NULL);
    http_on_drain(f->call, NULL, NULL);
    if ((r->sys || r->more) && f->begun) {
        http_stream_abort(f->call);
    } else if (r->sys) {
        refuse(f->call, r);
    } else {
        begin_list(f);
        (void)http_stream_write(f->call, "]}", 2);
        http_stream_end(f->call);
    }
    fs_free(f);
}

void e2b_fs_list_dir(struct http_call *c)
{
    struct file_order o = {.verb = FILE_WALK, .entries_max = LIST_MAX};
    struct fs_call *f = fs_begin(c, &list_shape);
    int64_t depth = f ? f->body.depth : 0;

    if (!f || !take_path(f, &f->body.path, &f->path))
        return;
    o.depth_max = depth < 1 ? 1 : depth < FILE_DEPTH_MAX ? (uint32_t)depth : FILE_DEPTH_MAX;
    if (!fs_start(f, &o, &f->home->inside.files, on_list_end))
        return;
    filework_on_entry(f->filework, on_listed);
    http_on_drain(c, on_drain, f);
    http_on_gone(c, on_gone, f);
}

/* ---- events ---- */

static const char *const event_names[] = {
    [FILE_EVENT_CREATE] = "EVENT_TYPE_CREATE", [FILE_EVENT_WRITE] = "EVENT_TYPE_WRITE",
    [FILE_EVENT_REMOVE] = "EVENT_TYPE_REMOVE", [FILE_EVENT_RENAME] = "EVENT_TYPE_RENAME",
    [FILE_EVENT_CHMOD] = "EVENT_TYPE_CHMOD",
};

static size_t event_max(const char *path, const struct file_event *v)
{
    const struct entry_path at = {path, v->name};

    return EVENT_SLACK + v->name.n * ESCAPE_FACTOR + (v->entry ? entry_json_max(&at, v->entry) : 0);
}

static void write_event(struct jw *w, const char *path, const struct file_event *v)
{
    const struct entry_path at = {path, v->name};

    jw_object(w);
    jw_kv_bytes(w, "name", v->name.p, v->name.n);
    jw_kv_string(w, "type", event_names[v->kind]);
    if (v->entry) {
        jw_key(w, "entry");
        envd_write_entry(w, &at, v->entry);
    }
    jw_object_end(w);
}

/* ---- a stream of events ---- */

static const char lost_words[] = "events were lost: they came faster than they were read";

static void stream_drained(void *user)
{
    on_drain(user);
}

static void stream_expired(void *user)
{
    fs_free(user);
}

static const struct connect_events stream_events = {on_gone, stream_drained, stream_expired};

static bool send_event(struct fs_call *f, const struct file_event *v)
{
    struct buf text = BUF_INIT(event_max(f->path, v));
    struct jw w = JW(&text);
    bool more;

    jw_object(&w);
    jw_key(&w, "filesystem");
    write_event(&w, f->path, v);
    jw_object_end(&w);
    more = connect_send(&f->stream, text.p ? text.p : "{}", text.p ? text.n : 2);
    buf_done(&text);
    return more;
}

static void on_later(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    fs_free(user);
}

static bool on_event(void *user, const struct file_event *v)
{
    static const char start[] = "{\"start\":{}}";
    struct fs_call *f = user;

    if (v->kind == FILE_EVENT_STANDS) {
        f->begun = true;
        (void)evtimer_assign(&f->later, http_app(f->call)->base, on_later, f);
        connect_begin(&f->stream, f->call, "{\"keepalive\":{}}", &stream_events, f);
        return connect_send(&f->stream, start, sizeof start - 1);
    }
    if (v->kind != FILE_EVENT_OVERFLOW)
        return send_event(f, v);
    connect_fail(&f->stream, CONNECT_DATA_LOSS, lost_words);
    event_active(&f->later, EV_TIMEOUT, 0);
    return false;
}

/* The sandbox has ended, or the watch could not be made. */
static void on_watch_end(void *user, struct file_result *r)
{
    struct fs_call *f = user;

    f->filework = NULL;
    if (f->begun) {
        connect_fail(&f->stream, CONNECT_UNAVAILABLE, "the sandbox has ended");
    } else {
        http_on_gone(f->call, NULL, NULL);
        refuse(f->call, r);
    }
    fs_free(f);
}

static struct file_order watch_order(const struct fs_call *f)
{
    return (struct file_order){
        .verb = FILE_WATCH, .recursive = f->body.recursive, .with_entries = f->body.with_entries};
}

void e2b_fs_watch_dir(struct http_call *c)
{
    struct fs_call *f = fs_begin(c, &watch_shape);
    struct file_order o;

    if (!f || !take_path(f, &f->body.path, &f->path))
        return;
    o = watch_order(f);
    if (!fs_start(f, &o, &f->home->inside.watched, on_watch_end))
        return;
    filework_on_event(f->filework, on_event);
    http_on_gone(c, on_gone, f);
}

/* ---- watchers that are asked ---- */

static void keep_event(const struct watcher *w, const struct file_event *v, struct buf *out)
{
    struct jw jw = JW(out);

    if (out->n > 0)
        (void)buf_putc(out, ',');
    write_event(&jw, w->path, v);
}

static void on_made(void *user, struct watcher *w, const struct file_result *why)
{
    struct fs_call *f = user;
    struct buf body = BUF_INIT(EVENT_SLACK);
    struct jw jw = JW(&body);

    if (why) {
        refuse(f->call, why);
    } else {
        jw_object(&jw);
        jw_kv_string(&jw, "watcherId", w->id);
        jw_object_end(&jw);
        connect_reply(f->call, &body);
    }
    fs_free(f);
}

void e2b_fs_create_watcher(struct http_call *c)
{
    struct fs_call *f = fs_begin(c, &watch_shape);
    struct watcher_spec spec;
    struct err e;

    if (!f || !take_path(f, &f->body.path, &f->path))
        return;
    spec = (struct watcher_spec){
        .path = f->path,
        .recursive = f->body.recursive,
        .with_entries = f->body.with_entries,
        .write = keep_event,
        .made = on_made,
        .user = f,
    };
    if (watcher_create(f->home, &spec, &e) == 0) {
        activity_begin(f->home, &f->activity, fs_drop);
        return;
    }
    connect_refuse_err(c, &e);
    fs_free(f);
}

/* NULL: answered. */
static struct watcher *find_watcher(struct fs_call *f)
{
    struct watcher *w = watcher_find(f->home, f->body.watcher.p, f->body.watcher.n);

    if (!w)
        connect_refuse(f->call, CONNECT_NOT_FOUND, "there is no watcher '%.64s'",
                       f->body.watcher.p ? f->body.watcher.p : "");
    return w;
}

void e2b_fs_get_watcher_events(struct http_call *c)
{
    struct fs_call *f = fs_begin(c, &watcher_shape);
    struct watcher *w = f ? find_watcher(f) : NULL;
    struct buf events = BUF_INIT(0), body;
    bool lost;

    if (w && w->lost && w->filework) {
        w->lost = false; /* told once; what was kept is in the next answer */
        connect_refuse(c, CONNECT_DATA_LOSS, "%s", lost_words);
    } else if (w && !w->filework && w->events.n == 0) {
        connect_refuse(c, CONNECT_UNAVAILABLE, "the watch has ended: its helper was killed");
    } else if (w) {
        watcher_take(w, &events, &lost);
        body = BUF_INIT(events.n + EVENT_SLACK);
        (void)buf_puts(&body, "{\"events\":[");
        (void)buf_put(&body, events.p ? events.p : "", events.n);
        (void)buf_puts(&body, "]}");
        connect_reply(c, &body);
    }
    buf_done(&events);
    if (f)
        fs_free(f);
}

void e2b_fs_remove_watcher(struct http_call *c)
{
    struct fs_call *f = fs_begin(c, &watcher_shape);
    struct watcher *w = f ? find_watcher(f) : NULL;

    if (w) {
        watcher_remove(w);
        connect_reply_empty(c);
    }
    if (f)
        fs_free(f);
}
