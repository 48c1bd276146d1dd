/* SPDX-License-Identifier: MIT */
/*
 * Watchers: directories of a persistent sandbox that are watched for clients that ask now and then
 * what has happened, instead of following a stream.
 *
 *   asked for ──stands──▶ collecting ──removed, or the sandbox ends──▶ freed
 *       └──failed: told, freed
 *
 * A watcher keeps what happened until it is asked for, up to WATCHER_BYTES_MAX; then it reads no
 * more, the kernel's queue fills, and what is lost is told as one event. It does not keep its
 * sandbox from being idle.
 */
#pragma once

#include "app/sandbox/sandboxes.h"
#include "base/buf.h"
#include "core/port_files.h"

enum {
    WATCHER_ID_MAX = 24,
    WATCHER_BYTES_MAX = 1 << 20,
    WATCHERS_ENDED_MAX = 16, /* of a sandbox: their helper is gone, their events are still there */
};

struct watcher;

/* Writes an event as its asker will read it; what it appends is kept as it is. */
typedef void watcher_write_fn(const struct watcher *w, const struct file_event *event,
                              struct buf *out);
/* It stands (`why` NULL), or could not be made: then it is freed after the call. */
typedef void watcher_made_fn(void *user, struct watcher *w, const struct file_result *why);

struct watcher {
    TAILQ_ENTRY(watcher) link;
    struct persistent *home; /* borrowed */
    char id[WATCHER_ID_MAX];
    char *path;                /* owned: absolute */
    struct filework *filework; /* owned; NULL: it has ended */
    watcher_write_fn *write;
    watcher_made_fn *made; /* NULL: it was told */
    void *user;
    struct buf events; /* written and not yet asked for */
    bool full;         /* it waits until it is asked */
    bool lost;         /* events were, since it was asked */
};

struct watcher_spec {
    const char *path; /* absolute; copied */
    bool recursive, with_entries;
    watcher_write_fn *write;
    watcher_made_fn *made;
    void *user;
};

/* made() follows, never from inside. ERR_BUSY: there are too many. */
must_check int watcher_create(struct persistent *p, const struct watcher_spec *spec, struct err *e);
struct watcher *watcher_find(struct persistent *p, const char *id, size_t n); /* NULL: none */
/* What has happened since the last call; *ret_lost: not all of it. */
void watcher_take(struct watcher *w, struct buf *ret, bool *ret_lost);
void watcher_remove(struct watcher *w);
/* The sandbox is freed. */
void watchers_done(struct persistent *p);
