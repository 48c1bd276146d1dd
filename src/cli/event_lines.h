/* SPDX-License-Identifier: MIT */
/* Reads text/event-stream: bytes in, events out. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum { EVENT_NAME_MAX = 64, EVENT_ID_MAX = 256, EVENT_DATA_MAX = 64 << 20 };

/* One event. Borrowed for the length of the call. */
struct event_seen {
    const char *name; /* "message" unless it has another */
    const char *id;   /* the last one said; "": none yet */
    const char *data; /* its lines with LF between them; NUL behind it */
    size_t n;
};
/* -1: no more of them are wanted. */
typedef int event_seen_fn(void *user, const struct event_seen *ev);

struct event_lines {
    struct buf line, data; /* owned */
    char name[EVENT_NAME_MAX + 1], id[EVENT_ID_MAX + 1];
    bool cr;       /* the last byte was CR: a LF that follows belongs to it */
    bool has_data; /* also when it is empty */
    bool begun;    /* what a byte order mark may stand in front of has passed */
};

void event_lines_init(struct event_lines *l, size_t data_max);
void event_lines_done(struct event_lines *l);
/* -1: fn() said so, or an event is too large, or there is no memory. */
must_check int event_lines_feed(struct event_lines *l, const char *p, size_t n, event_seen_fn *fn,
                                void *user);
