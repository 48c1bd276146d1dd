/* SPDX-License-Identifier: MIT */
#include "app/execution/workspace_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/execution/workspaces.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jw.h"
#include "core/port_work.h"

enum { RECORD_MAX = 4096 };

/* Half-written; no workspace is called so. */
static const char half[] = ".new";

struct change {
    char name[SESSION_WORKSPACE_MAX];
    struct buf text; /* empty: the record goes */
    TAILQ_ENTRY(change) link;
};
TAILQ_HEAD(changes, change);

struct workspace_records {
    int dir;                /* owned */
    struct work_pool *pool; /* borrowed */
    struct changes waiting; /* for their turn */
    struct changes batch;   /* the worker's, while it is busy */
    struct work work;
    bool busy, stopped;
};

/* ---- writing; on a worker ---- */

/* There is always either the old record or the new one. */
static void write_one(int dir, const struct change *c)
{
    cleanup_close int fd =
        openat(dir, half, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd >= 0 && fd_write_all(fd, c->text.p, c->text.n) == 0)
        (void)renameat(dir, half, dir, c->name);
}

static void batch_write(struct workspace_records *r)
{
    struct change *c;

    TAILQ_FOREACH(c, &r->batch, link)
    {
        if (c->text.n > 0)
            write_one(r->dir, c);
        else
            (void)unlinkat(r->dir, c->name, 0);
    }
}

static void batch_free(struct workspace_records *r)
{
    struct change *c;

    while ((c = TAILQ_FIRST(&r->batch))) {
        TAILQ_REMOVE(&r->batch, c, link);
        buf_done(&c->text);
        free(c);
    }
}

static void batch_run(struct work *w)
{
    batch_write(container_of(w, struct workspace_records, work));
}

static void go_on(struct workspace_records *r);

static void batch_done(struct work *w)
{
    struct workspace_records *r = container_of(w, struct workspace_records, work);

    batch_free(r);
    r->busy = false;
    go_on(r);
}

static void go_on(struct workspace_records *r)
{
    if (r->busy || r->stopped || TAILQ_EMPTY(&r->waiting))
        return;
    r->busy = true;
    TAILQ_CONCAT(&r->batch, &r->waiting, link);
    r->work = (struct work){.run = batch_run, .done = batch_done, .lane = WORK_SHORT};
    work_submit(r->pool, &r->work);
}

/* ---- asking for it ---- */

static struct change *change_new(const char *name)
{
    struct change *c = calloc(1, sizeof *c);

    if (c) {
        (void)snprintf(c->name, sizeof c->name, "%s", name);
        c->text = BUF_INIT(RECORD_MAX);
    }
    return c;
}

static void change_add(struct workspace_records *r, struct change *c)
{
    TAILQ_INSERT_TAIL(&r->waiting, c, link);
    go_on(r);
}

int workspace_records_put(struct workspace_records *r, const struct workspace *w)
{
    struct change *c = change_new(w->name);
    struct jw j;

    if (!c)
        return -1;
    j = (struct jw)JW(&c->text);
    jw_object(&j);
    jw_kv_string(&j, "session_id", w->id);
    jw_kv_int(&j, "created_us", w->created_us);
    jw_kv_int(&j, "used_us", w->used_us);
    jw_object_end(&j);
    if (c->text.failed) {
        buf_done(&c->text);
        free(c);
        return -1;
    }
    change_add(r, c);
    return 0;
}

void workspace_records_remove(struct workspace_records *r, const char *name)
{
    struct change *c = change_new(name);

    if (c)
        change_add(r, c);
}

/* ---- the start and the end ---- */

static void read_text(const char *name, const char *text, size_t n, workspace_record_fn *fn,
                      void *user)
{
    struct workspace w = {0};
    struct buf id = BUF_INIT(SESSION_ID_MAX + 1);
    struct json_value v, session_id;
    struct err e;

    (void)snprintf(w.name, sizeof w.name, "%s", name);
    if (json_parse(text, n, 0, &v, &e) < 0 || v.type != JSON_OBJECT ||
        !json_to_int(json_member(v, "created_us"), &w.created_us) ||
        !json_to_int(json_member(v, "used_us"), &w.used_us))
        return;
    session_id = json_member(v, "session_id");
    if (session_id.p && session_id.type == JSON_STRING &&
        json_decode_string(session_id, 0, &id) == 0 && id.n > 0)
        (void)snprintf(w.id, sizeof w.id, "%.*s", (int)id.n, id.p);
    buf_done(&id);
    w.saved_us = w.used_us;
    fn(user, &w);
}

static void read_one(int dir, const char *name, workspace_record_fn *fn, void *user)
{
    cleanup_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char text[RECORD_MAX];
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text);

    if (n > 0 && n < (ssize_t)sizeof text)
        read_text(name, text, (size_t)n, fn, user);
}

int workspace_records_open(const char *path, struct work_pool *work, workspace_record_fn *fn,
                           void *user, struct workspace_records **ret, struct err *e)
{
    cleanup_free struct workspace_records *r = calloc(1, sizeof *r);
    DIR *d;

    if (!r)
        return err_set(e, ERR_HOST, "no memory for records of workspaces");
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "make '%.300s'", path);
    d = opendir(path);
    r->dir = d ? fd_dup(dirfd(d)) : -1;
    if (r->dir < 0) {
        (void)err_sys(e, -errno, "open '%.300s'", path);
        if (d)
            (void)closedir(d);
        return -1;
    }
    for (const struct dirent *at; (at = readdir(d));)
        if (at->d_name[0] != '.' && strlen(at->d_name) < SESSION_WORKSPACE_MAX)
            read_one(r->dir, at->d_name, fn, user);
    (void)closedir(d);
    r->pool = work;
    TAILQ_INIT(&r->waiting);
    TAILQ_INIT(&r->batch);
    *ret = take_ptr(&r);
    return 0;
}

void workspace_records_stop(struct workspace_records *r)
{
    r->stopped = true;
}

void workspace_records_close(struct workspace_records *r)
{
    if (!r)
        return;
    TAILQ_CONCAT(&r->batch, &r->waiting, link); /* behind what no worker got to */
    batch_write(r);
    batch_free(r);
    closep(&r->dir);
    free(r);
}
