/* SPDX-License-Identifier: MIT */
/*
 * Messages to the launcher, or to pid 1 of a persistent sandbox: in order, none lost. The socket
 * holds about a hundred; what does not fit waits here until the other side has read some. Bounded
 * by the number of sandboxes and requests, which admission bounds.
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "wire/wire.h"

struct outbox_item;

struct outbox {
    int sock; /* borrowed; -1 when closed */
    struct event writable;
    TAILQ_HEAD(, outbox_item) waiting;
};

void outbox_init(struct outbox *o);
/* From now on there is a socket and a loop. */
void outbox_open(struct outbox *o, struct event_base *loop, int sock);
void outbox_close(struct outbox *o); /* drops what waits */

/* Sends now or later. The descriptors are taken, whatever happens. 0 or -errno. */
must_check int outbox_send(struct outbox *o, const void *msg, size_t n, int *fds, size_t fds_n);
