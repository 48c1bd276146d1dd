/* SPDX-License-Identifier: MIT */
/*
 * Changes go back to the host, one file after another: created, then modified, then deleted. Only
 * what stands in the way of something created is deleted before, and is there again if that cannot
 * be written. When something fails, the request says whether to go on, to stop, or to undo
 * everything, deletions included.
 *
 * The loop decides and tells, a worker writes: so a client that listens hears of a file before it
 * is written and again when it is there.
 */
#pragma once

#include "app/function/call_mount.h"
#include "base/err.h"
#include "core/port_work.h"
#include "function/changes.h"

struct sync;

enum sync_what {
    SYNC_BEFORE,
    SYNC_AFTER,
    SYNC_ERROR,
    SYNC_SKIPPED,
    SYNC_ABORTED,
    SYNC_DENIED, /* the rules do not allow it */
    SYNC_WHAT_COUNT,
};

struct sync_event {
    enum sync_what what;
    bool untold; /* it is in the report only */
    const struct change *change;
    const char *error; /* static; AFTER and ERROR: what was wrong, "": nothing */
};

/* What became of all changes; borrowed from the sync, as are they from the call. */
struct sync_report {
    const struct mount *mount;
    const struct sync_event *events; /* in their order */
    size_t events_n;
    const struct change *const *synced;
    size_t synced_n;
    bool rolled_back;
};

typedef void sync_event_fn(void *user, const struct mount *m, const struct sync_event *event);
/* The report lives as long as the sync. */
typedef void sync_done_fn(void *user, const struct sync_report *r);

struct sync_order {
    const struct call_tree *tree; /* borrowed until it is done, like the changes */
    const struct changes *changes;
    const struct mount *rules;   /* whose onError and allowAbort count */
    const struct mount *answers; /* whose sync.rules count; NULL: those of `rules` */
    struct work_pool *work;
    sync_event_fn *event; /* from the loop; NULL: none are wanted */
    sync_done_fn *done;   /* once, from the loop, never from inside sync_start() */
    void *user;
};

must_check int sync_start(const struct sync_order *o, struct sync **ret, struct err *e);
/* Did everything that was to be written get there? */
bool sync_is_complete(const struct sync *s);
void sync_free(struct sync *s); /* NULL is fine; done or never to be */
