/* SPDX-License-Identifier: MIT */
#include "app/sandbox/watchers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { ID_RANDOM = 16, EVENT_SLACK = 64 * 1024 };

static void watcher_free(struct watcher *w)
{
    TAILQ_REMOVE(&w->home->inside.watchers, w, link);
    w->home->inside.watchers_n -= w->filework != NULL;
    filework_free(w->filework);
    buf_done(&w->events);
    free(w->path);
    free(w);
}

static void tell_made(struct watcher *w, const struct file_result *why)
{
    watcher_made_fn *made = w->made;

    w->made = NULL;
    if (made)
        made(w->user, w, why);
}

/* All of it, or nothing. */
static void keep(struct watcher *w, const struct file_event *event)
{
    size_t before = w->events.n;

    w->write(w, event, &w->events);
    if (w->events.failed) {
        w->events.n = before;
        w->events.failed = false;
        w->lost = true;
    }
}

static bool on_event(void *user, const struct file_event *event)
{
    struct watcher *w = user;

    if (event->kind == FILE_EVENT_STANDS) {
        tell_made(w, NULL);
        return true;
    }
    if (event->kind == FILE_EVENT_OVERFLOW)
        w->lost = true;
    else
        keep(w, event);
    w->full = w->events.n >= WATCHER_BYTES_MAX;
    return !w->full;
}

/* It could not be made, or its helper has ended: the sandbox has, or a program of it killed it. */
static void on_ended(void *user, struct file_result *r)
{
    struct watcher *w = user;

    w->filework = NULL;
    w->home->inside.watchers_n--;
    if (!w->made) {
        w->lost = true;
        return;
    }
    tell_made(w, r);
    watcher_free(w);
}

/* Those that have ended are kept for who asks once more what happened; the oldest give way. */
static void make_room(struct persistent *p)
{
    struct watcher *w, *next;
    size_t ended = 0;

    TAILQ_FOREACH(w, &p->inside.watchers, link)
    ended += !w->filework;
    for (w = TAILQ_FIRST(&p->inside.watchers); w && ended >= WATCHERS_ENDED_MAX; w = next) {
        next = TAILQ_NEXT(w, link);
        if (!w->filework) {
            watcher_free(w);
            ended--;
        }
    }
}

int watcher_create(struct persistent *p, const struct watcher_spec *spec, struct err *e)
{
    struct watcher *w = calloc(1, sizeof *w);
    struct file_order o = {
        .verb = FILE_WATCH, .recursive = spec->recursive, .with_entries = spec->with_entries};
    char tail[ID_RANDOM + 1];

    if (!w || !(w->path = strdup(spec->path))) {
        free(w);
        return err_set(e, ERR_HOST, "no memory for a watcher");
    }
    random_base36(tail, ID_RANDOM);
    (void)snprintf(w->id, sizeof w->id, "w%s", tail);
    make_room(p);
    w->home = p;
    w->write = spec->write;
    w->made = spec->made;
    w->user = spec->user;
    /* A message of events comes whole, whatever it becomes when it is written. */
    w->events = BUF_INIT(WATCHER_BYTES_MAX + 8 * EVENT_SLACK);
    TAILQ_INSERT_TAIL(&p->inside.watchers, w, link);
    o.path = (struct bytes){w->path, strlen(w->path)};
    if (filework_start(&p->inside.watched, &o, on_ended, w, &w->filework, e) < 0) {
        watcher_free(w);
        return -1;
    }
    p->inside.watchers_n++;
    filework_on_event(w->filework, on_event);
    return 0;
}

struct watcher *watcher_find(struct persistent *p, const char *id, size_t n)
{
    struct watcher *w;

    TAILQ_FOREACH(w, &p->inside.watchers, link)
    if (!w->made && strlen(w->id) == n && memcmp(w->id, id, n) == 0)
        return w;
    return NULL;
}

void watcher_take(struct watcher *w, struct buf *ret, bool *ret_lost)
{
    *ret_lost = w->lost;
    *ret = w->events;
    w->events = BUF_INIT(ret->max);
    w->lost = w->filework == NULL; /* nothing more will come: that is told each time */
    if (w->full && w->filework)
        filework_resume(w->filework);
    w->full = false;
}

void watcher_remove(struct watcher *w)
{
    watcher_free(w);
}

void watchers_done(struct persistent *p)
{
    struct watcher *w;

    while ((w = TAILQ_FIRST(&p->inside.watchers)))
        watcher_free(w);
}
