/* SPDX-License-Identifier: MIT */
#include "app/execution/session_disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/execution/workspaces.h"
#include "core/port_jail.h"

enum {
    DISK_WORDS_MAX = 200,
    DISK_NEAR = 2,          /* more than one part in that many of a limit: remembered */
    DISK_RESERVE_SHARE = 10 /* on a small file system the reserve is one part in that many */
};

struct disk_look {
    struct app *app;
    struct session *session; /* shared */
    struct measuring *m;
    disk_fn *fn; /* NULL: nobody waits */
    void *user;
    LIST_ENTRY(disk_look) link;
};

/* Which limit is exceeded? False: none. */
static bool is_over(const struct config *c, const struct workspace_size *s,
                    char out[DISK_WORDS_MAX])
{
    uint64_t reserve = c->disk_reserve_mb << 20;

    if (reserve > s->total / DISK_RESERVE_SHARE)
        reserve = s->total / DISK_RESERVE_SHARE;
    if (c->session_disk_mb && s->bytes > c->session_disk_mb << 20)
        (void)snprintf(out, DISK_WORDS_MAX,
                       "the workspace of this session has more than %llu MiB (SESSION_DISK_MB)",
                       (unsigned long long)c->session_disk_mb);
    else if (c->session_files && s->files > c->session_files)
        (void)snprintf(out, DISK_WORDS_MAX,
                       "the workspace of this session has more than %llu files (SESSION_FILES)",
                       (unsigned long long)c->session_files);
    else if (s->too_deep)
        (void)snprintf(out, DISK_WORDS_MAX,
                       "directories in the workspace of this session are too deep in each other");
    else if (s->room < reserve)
        (void)snprintf(out, DISK_WORDS_MAX,
                       "the file system of the workspaces has less than %llu MiB left "
                       "(DISK_RESERVE_MB)",
                       (unsigned long long)(reserve >> 20));
    else
        return false;
    return true;
}

static bool is_near(const struct config *c, const struct workspace_size *s)
{
    return (c->session_disk_mb && s->bytes > (c->session_disk_mb << 20) / DISK_NEAR) ||
           (c->session_files && s->files > c->session_files / DISK_NEAR);
}

static void look_free(struct disk_look *d)
{
    LIST_REMOVE(d, link);
    session_leave(&d->app->workspace.sessions, d->session);
    free(d);
}

static void on_measured(void *user, const struct workspace_size *s)
{
    struct disk_look *d = user;
    struct app *a = d->app;
    char words[DISK_WORDS_MAX];
    bool over = is_over(&a->config, s, words);

    if (s->error && s->error != EAGAIN)
        log_event(&a->log, LOG_WARN, "workspace_not_measured",
                  LOG_STR("session_id", d->session->id), LOG_STR("reason", strerror(s->error)));
    workspaces_measured(a->workspace.all, d->session->workspace, s);
    session_remember(&a->workspace.sessions, d->session, over || is_near(&a->config, s));
    if (over) {
        a->metrics.workspaces_over++;
        log_event(&a->log, LOG_WARN, "workspace_over_limit", LOG_STR("session_id", d->session->id),
                  LOG_STR("reason", words), LOG_INT("bytes", (int64_t)s->bytes),
                  LOG_INT("files", (int64_t)s->files));
    }
    if (d->fn)
        d->fn(d->user, over ? words : NULL);
    look_free(d);
}

struct disk_look *disk_look(struct app *a, struct jail *j, struct session *s, disk_fn *fn,
                            void *user)
{
    const struct workspace_ask ask = {.name = s->workspace,
                                      .bytes_max = a->config.session_disk_mb << 20,
                                      .files_max = a->config.session_files};
    struct disk_look *d = j->ops->workspace ? calloc(1, sizeof *d) : NULL;
    struct err e;

    if (!d)
        return NULL;
    *d = (struct disk_look){.app = a, .session = s, .fn = fn, .user = user};
    s->users++;
    LIST_INSERT_HEAD(&a->workspace.looks, d, link);
    if (j->ops->workspace(j, &ask, on_measured, d, &d->m, &e) < 0) {
        look_free(d);
        return NULL;
    }
    return d;
}

void disk_cancel(struct disk_look *d)
{
    if (!d)
        return;
    measuring_cancel(d->m);
    look_free(d);
}

void disk_done(struct disk_looks *all)
{
    struct disk_look *d;

    while ((d = LIST_FIRST(all)))
        disk_cancel(d);
}

void disk_look_after(struct app *a, struct jail *j, struct session *s)
{
    (void)disk_look(a, j, s, NULL, NULL);
}
