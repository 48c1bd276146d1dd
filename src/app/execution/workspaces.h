/* SPDX-License-Identifier: MIT */
/*
 * The kept workspaces of sessions that there are: whose, since when, when last used, how large.
 *
 * The directories belong to users of sandboxes and are out of reach of the daemon, so it keeps a
 * record of each: STATE_DIR/sessions/NAME, named as the directory is. A record is written when a
 * workspace is new and once a minute while it is used. A directory without a record gets one at
 * the start, a record without a directory goes.
 *
 * A workspace that no execution has used for SESSION_MAX_AGE is removed, one after the other, the
 * oldest first. Removing is the launcher's (launcher/discard.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/execution/session.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/port_jail.h"

struct app;
struct workspaces;

struct workspace {
    char name[SESSION_WORKSPACE_MAX]; /* of the directory, or PLAN_WORKSPACE_OWN */
    char id[SESSION_ID_MAX + 1];      /* of the session; "": not known until it is used */
    uint64_t number;                  /* the newer, the higher */
    int64_t created_us, used_us;      /* microseconds of the calendar */
    int64_t measured_us;              /* 0: never */
    int64_t saved_us;                 /* the used_us on disk; 0: none */
    uint64_t bytes, files;            /* when it was measured */
    bool discarding;                  /* on its way out */
    TAILQ_ENTRY(workspace) all, idle;
    SLIST_ENTRY(workspace) chain;
};

/* root: taken, the directory of the workspaces; -1: it cannot be read. */
must_check int workspaces_open(struct app *a, int root, struct workspaces **ret, struct err *e);
void workspaces_stop(struct workspaces *all);  /* there are no workers any more */
void workspaces_close(struct workspaces *all); /* NULL is fine */

/* An execution of the session has begun or ended. */
void workspaces_used(struct workspaces *all, const struct session *s);
void workspaces_measured(struct workspaces *all, const char *name, const struct workspace_size *s);

/* Of the session with that id; NULL: it has none. */
struct workspace *workspaces_find(struct workspaces *all, const char *session_id);
/* The newest with a lower number; NULL: there is none. */
struct workspace *workspaces_before(struct workspaces *all, uint64_t number);
struct workspace *workspace_older(struct workspace *w); /* the next one */
/* Is an execution of its session running or waiting? */
bool workspace_in_use(struct workspaces *all, const struct workspace *w);

/* failed: NULL, or in words what went wrong. w: NULL when there is no such workspace any more. */
typedef void workspace_fn(void *user, struct workspace *w, const char *failed);
struct workspace_order;
/* Counts everything that is in it. fn is called once, unless the caller leaves. ERR_HOST. */
must_check int workspace_measure(struct workspaces *all, const struct workspace *w,
                                 workspace_fn *fn, void *user, struct workspace_order **ret,
                                 struct err *e);
/* Removes it; goes on when the caller leaves. ERR_BUSY: it is in use. ERR_DENIED: it is the own
 * one. */
must_check int workspace_discard(struct workspaces *all, struct workspace *w, workspace_fn *fn,
                                 void *user, struct workspace_order **ret, struct err *e);
void workspace_leave(struct workspace_order *o);
