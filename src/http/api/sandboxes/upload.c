/* SPDX-License-Identifier: MIT */
#include "http/api/sandboxes/upload.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "base/hash.h"

enum { REST_MAX = 1 << 20, PATHS_MAX = 4 << 20 };

/* A path that a part of this body had. */
struct taken {
    uint64_t hash;
    char *path; /* owned */
};

struct upload {
    struct activity activity;
    struct upload_conf conf;
    struct filework *filework; /* of the file being written; NULL: none */
    char *path;                /* owned: of that file */
    struct multipart parts;
    bool is_parts;
    bool writing; /* the part at hand is written, not ignored */
    bool ended;   /* the body has */
    bool full;    /* the sandbox takes no more for now */
    bool failed;  /* `wrong` says why */
    struct buf
        rest; /* of the body: what came with the end of a file that is not in its place yet */
    struct taken taken[MULTIPART_PARTS_MAX];
    size_t taken_n, paths_n;
    struct err wrong;
    struct event later; /* for what must not be done inside a callback of the body */
};

static void upload_free(struct upload *u)
{
    activity_end(&u->activity);
    filework_free(u->filework);
    (void)event_del(&u->later);
    for (size_t i = 0; i < u->taken_n; i++)
        free(u->taken[i].path);
    free(u->path);
    buf_done(&u->rest);
    u->conf.freed(u->conf.user);
    free(u);
}

static void on_drop(struct activity *a)
{
    upload_free((struct upload *)((char *)a - offsetof(struct upload, activity)));
}

static void on_gone(void *user)
{
    upload_free(user);
}

/* Answers and frees. */
static void end(struct upload *u, const struct file_result *failure)
{
    const struct upload_end how = {failure, u->failed ? &u->wrong : NULL};

    http_on_gone(u->conf.call, NULL, NULL);
    http_on_body(u->conf.call, NULL, NULL, NULL);
    u->conf.ended(u->conf.user, &how);
    upload_free(u);
}

static void on_later(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    end(user, NULL);
}

/* ---- one file ---- */

static void go_on(struct upload *u);

static void on_drain(void *user)
{
    struct upload *u = user;

    u->full = false;
    go_on(u);
}

static bool on_entry(void *user, const struct file_entry *entry)
{
    struct upload *u = user;

    u->conf.entry(u->conf.user, entry);
    return true;
}

static void on_written(void *user, struct file_result *r)
{
    struct upload *u = user;

    u->filework = NULL;
    u->full = false;
    if (r->sys || !u->is_parts) {
        end(u, r->sys ? r : NULL);
        return;
    }
    u->parts.held = false;
    go_on(u);
}

static int file_begin(struct upload *u, struct err *e)
{
    const struct file_order o = {
        .verb = FILE_WRITE,
        .path = {u->path, strlen(u->path)},
        .parents = true,
        .gzip = u->conf.gzip,
        .told = true,
        .second = u->conf.metadata,
    };

    if (filework_start(&u->conf.home->inside.files, &o, on_written, u, &u->filework, e) < 0)
        return -1;
    filework_on_drain(u->filework, on_drain);
    filework_on_entry(u->filework, on_entry);
    return 0;
}

/* ---- parts ---- */

/* -1: another part of this body had that path. */
static int path_take(struct upload *u, struct err *e)
{
    size_t n = strlen(u->path);
    uint64_t hash = hash_bytes(0, u->path, n);

    for (size_t i = 0; i < u->taken_n; i++)
        if (u->taken[i].hash == hash && strcmp(u->taken[i].path, u->path) == 0)
            return err_set(e, ERR_CALLER, "two parts are the file %.300s", u->path);
    u->paths_n += n;
    if (u->paths_n > PATHS_MAX)
        return err_set(e, ERR_CALLER, "the paths of all parts are longer than %d bytes", PATHS_MAX);
    u->taken[u->taken_n].path = strdup(u->path);
    if (!u->taken[u->taken_n].path)
        return err_set(e, ERR_HOST, "no memory for the path of a part");
    u->taken[u->taken_n++].hash = hash;
    return 0;
}

static int on_part(void *user, const struct multipart_part *part, struct err *e)
{
    struct upload *u = user;

    free(u->path);
    u->path = NULL;
    if (u->conf.path(u->conf.user, part, &u->path, e) < 0)
        return -1;
    u->writing = u->path != NULL;
    if (!u->writing)
        return 0;
    return path_take(u, e) < 0 ? -1 : file_begin(u, e);
}

static int on_content(void *user, const char *p, size_t n, struct err *e)
{
    struct upload *u = user;

    (void)e;
    /* A work that failed meanwhile tells so from the loop. */
    if (u->writing && u->filework && !filework_feed(u->filework, p, n))
        u->full = true;
    return 0;
}

static int on_part_end(void *user, struct err *e)
{
    struct upload *u = user;

    (void)e;
    if (!u->writing || !u->filework)
        return 0;
    filework_feed_end(u->filework);
    u->parts.held = true;
    return 0;
}

/* ---- the body ---- */

/* The call cannot be answered from inside its own callback. */
static void fail_later(struct upload *u)
{
    u->failed = true;
    filework_free(take_ptr(&u->filework));
    event_active(&u->later, EV_TIMEOUT, 0);
}

static void take(struct upload *u, const char *p, size_t n)
{
    size_t used = 0;

    if (!u->is_parts) {
        u->full = u->filework && !filework_feed(u->filework, p, n);
        return;
    }
    if (multipart_feed(&u->parts, p, n, &used, &u->wrong) < 0)
        fail_later(u);
    else if (used < n && buf_put(&u->rest, p + used, n - used) < 0)
        fail_later(u);
}

static bool waits(const struct upload *u)
{
    return u->full || u->parts.held || u->failed;
}

static int on_data(void *user, const char *p, size_t n)
{
    struct upload *u = user;

    if (u->failed)
        return 0;
    take(u, p, n);
    if (waits(u))
        http_body_pause(u->conf.call);
    return 0;
}

/* What had to wait, then more of the body. */
static void go_on(struct upload *u)
{
    struct buf rest = u->rest;

    if (waits(u))
        return;
    u->rest = BUF_INIT(rest.max);
    if (rest.n > 0)
        take(u, rest.p, rest.n);
    buf_done(&rest);
    if (!waits(u))
        http_body_resume(u->conf.call);
}

static void on_end(void *user)
{
    struct upload *u = user;

    if (u->failed)
        return;
    u->ended = true;
    if (!u->is_parts) {
        if (u->filework)
            filework_feed_end(u->filework);
        return;
    }
    if (multipart_end(&u->parts, &u->wrong) < 0)
        fail_later(u);
    else
        event_active(&u->later, EV_TIMEOUT, 0);
}

/* ---- beginning ---- */

static struct upload *upload_new(const struct upload_conf *conf, struct err *e)
{
    struct upload *u = calloc(1, sizeof *u);

    if (!u) {
        (void)err_set(e, ERR_HOST, "no memory for an upload");
        return NULL;
    }
    u->conf = *conf;
    u->rest = BUF_INIT(REST_MAX);
    (void)evtimer_assign(&u->later, http_app(conf->call)->base, on_later, u);
    return u;
}

static void listen_to(struct upload *u)
{
    activity_begin(u->conf.home, &u->activity, on_drop);
    http_on_body(u->conf.call, on_data, on_end, u);
    http_on_gone(u->conf.call, on_gone, u);
}

int upload_parts(const struct upload_conf *conf, const char *content_type, struct err *e)
{
    struct upload *u = upload_new(conf, e);

    if (!u)
        return -1;
    u->is_parts = true;
    if (multipart_begin(&u->parts, content_type,
                        &(struct multipart_events){
                            .begin = on_part, .content = on_content, .end = on_part_end, .user = u},
                        e) < 0) {
        free(u);
        return -1;
    }
    listen_to(u);
    return 0;
}

int upload_one(const struct upload_conf *conf, char *path, struct err *e)
{
    struct upload *u = upload_new(conf, e);

    if (!u) {
        free(path);
        return -1;
    }
    u->path = path;
    if (file_begin(u, e) < 0) {
        free(u->path);
        free(u);
        return -1;
    }
    listen_to(u);
    return 0;
}
