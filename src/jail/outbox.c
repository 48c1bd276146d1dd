/* SPDX-License-Identifier: MIT */
#include "jail/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

struct outbox_item {
    TAILQ_ENTRY(outbox_item) next;
    int fds[LAUNCH_FDS_MAX]; /* owned */
    size_t fds_n, n;
    char msg[];
};

static void drop_first(struct outbox *o)
{
    struct outbox_item *i = TAILQ_FIRST(&o->waiting);

    TAILQ_REMOVE(&o->waiting, i, next);
    fd_close_all(i->fds, i->fds_n);
    free(i);
}

static void on_writable(evutil_socket_t fd, short what, void *user)
{
    struct outbox *o = user;
    struct outbox_item *i;

    (void)what;
    while ((i = TAILQ_FIRST(&o->waiting))) {
        if (fd_send(fd, i->msg, i->n, i->fds, i->fds_n) == -EAGAIN)
            return;
        drop_first(o); /* sent; or the other side is gone, which is seen at its end of file */
    }
    (void)event_del(&o->writable);
}

void outbox_init(struct outbox *o)
{
    o->sock = -1;
    TAILQ_INIT(&o->waiting);
}

void outbox_open(struct outbox *o, struct event_base *loop, int sock)
{
    o->sock = sock;
    (void)event_assign(&o->writable, loop, sock, EV_WRITE | EV_PERSIST, on_writable, o);
}

void outbox_close(struct outbox *o)
{
    while (!TAILQ_EMPTY(&o->waiting))
        drop_first(o);
    if (o->sock >= 0)
        (void)event_del(&o->writable);
    o->sock = -1;
}

static int keep(struct outbox *o, const void *msg, size_t n, const int *fds, size_t fds_n)
{
    struct outbox_item *i = calloc(1, sizeof *i + n);

    if (!i)
        return -ENOMEM;
    memcpy(i->msg, msg, n);
    i->n = n;
    i->fds_n = fds_n;
    if (fds_n > 0)
        memcpy(i->fds, fds, fds_n * sizeof *fds);
    TAILQ_INSERT_TAIL(&o->waiting, i, next);
    (void)event_add(&o->writable, NULL);
    return 0;
}

int outbox_send(struct outbox *o, const void *msg, size_t n, int *fds, size_t fds_n)
{
    int r = o->sock < 0 ? -EPIPE : -EAGAIN;

    if (r == -EAGAIN && TAILQ_EMPTY(&o->waiting))
        r = fd_send(o->sock, msg, n, fds, fds_n);
    if (r == -EAGAIN) {
        r = keep(o, msg, n, fds, fds_n);
        if (r == 0)
            return 0; /* the descriptors went along */
    }
    fd_close_all(fds, fds_n);
    return r;
}
