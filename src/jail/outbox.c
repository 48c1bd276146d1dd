/* SPDX-License-Identifier: MIT */
#include "jail/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"

struct outbox_item {
    TAILQ_ENTRY(outbox_item) next;
    struct launch_msg msg;
    int fds[LAUNCH_FDS_MAX]; /* owned */
    size_t fds_n;
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
        if (fd_send(fd, &i->msg, sizeof i->msg, i->fds, i->fds_n) == -EAGAIN)
            return;
        drop_first(o); /* sent; or the launcher is gone, which its own end of file will tell */
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

static int keep(struct outbox *o, const struct launch_msg *m, const int *fds, size_t fds_n)
{
    struct outbox_item *i = calloc(1, sizeof *i);

    if (!i)
        return -ENOMEM;
    i->msg = *m;
    i->fds_n = fds_n;
    if (fds_n > 0)
        memcpy(i->fds, fds, fds_n * sizeof *fds);
    TAILQ_INSERT_TAIL(&o->waiting, i, next);
    (void)event_add(&o->writable, NULL);
    return 0;
}

int outbox_send(struct outbox *o, const struct launch_msg *m, int *fds, size_t fds_n)
{
    int r = o->sock < 0 ? -EPIPE : -EAGAIN;

    if (r == -EAGAIN && TAILQ_EMPTY(&o->waiting))
        r = fd_send(o->sock, m, sizeof *m, fds, fds_n);
    if (r == -EAGAIN) {
        r = keep(o, m, fds, fds_n);
        if (r == 0)
            return 0; /* the descriptors went along */
    }
    fd_close_all(fds, fds_n);
    return r;
}
