/* SPDX-License-Identifier: MIT */
/*
 * Pumps: bytes into and out of a sandbox, on the loop, bounded.
 *
 * A feed writes what it is given at once and keeps a copy only of what did not fit. A capture reads
 * a pipe. Either it keeps the beginning and drops the rest, so that a program is never blocked by
 * its own output; or it hands everything to a sink, which may pause it.
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum {
    PUMP_SCRATCH = 64 * 1024, /* read at once */
    PUMP_TURN = 512 * 1024,   /* read before others get their turn */
    PUMP_DISCARD = 1 << 20,   /* thrown away at once */
};

struct feed {
    int *fd; /* borrowed: a field of the sandbox; -1 once closed */
    bool close_at_end;
    bool broken;     /* nobody reads it any more */
    struct buf rest; /* owned */
    size_t rest_at;
    struct event writable;
    void (*idle)(void *user); /* from the loop: nothing waits any more; may be NULL */
    void *user;
};

/* Writes now what can be written. The pieces are not needed afterwards. */
void feed_start(struct feed *f, struct event_base *base, int *fd, bool close_at_end,
                struct iovec *pieces, size_t pieces_n);
/* Keeps a copy of the pieces and writes it only after feed_release(). */
void feed_hold(struct feed *f, int *fd, struct iovec *pieces, size_t pieces_n);
void feed_release(struct feed *f, struct event_base *base);
/* More of it, behind what still waits; -1: more than `most` bytes would wait. */
must_check int feed_more(struct feed *f, struct event_base *base, const void *p, size_t n,
                         size_t most);
/* Bytes that wait. */
static inline size_t feed_waiting(const struct feed *f)
{
    return f->rest.n - f->rest_at;
}
/* The end comes behind what waits. */
void feed_close(struct feed *f);
void feed_done(struct feed *f); /* fine on a zeroed feed */

/* What all captures share. */
struct pump_scratch {
    int null; /* /dev/null, for writing */
    char bytes[PUMP_SCRATCH];
};

struct capture;
typedef void capture_sink_fn(void *user, const struct capture *c, const char *p, size_t n);

struct capture {
    int *fd;          /* borrowed: a field of the sandbox; -1 once closed */
    struct buf *keep; /* borrowed */
    size_t keep_max;
    bool *truncated;       /* borrowed */
    capture_sink_fn *sink; /* not NULL: gets everything, nothing is kept */
    void *user;
    bool paused; /* only with a sink */
    struct event readable;
};

/* fn is called on the loop whenever there is something to read; it calls capture_read(). Nothing
 * happens if it is watched already. -1: nothing would ever be read. */
must_check int capture_start(struct capture *c, struct event_base *base, event_callback_fn fn,
                             void *user);
/* Reads until the pipe is empty, its end (closed then), a pause or the turn is over. True: there
 * may be more. */
bool capture_read(struct capture *c, struct pump_scratch *s);
void capture_pause(struct capture *c);
void capture_resume(struct capture *c);
void capture_done(struct capture *c);

static inline bool capture_is_open(const struct capture *c)
{
    return *c->fd >= 0;
}
