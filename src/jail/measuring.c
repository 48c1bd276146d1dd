/* SPDX-License-Identifier: MIT */
/* A kept workspace is measured or removed by the launcher; the answer comes through a pipe. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/launched.h"

struct measuring {
    struct event readable;
    int fd; /* owned */
    jail_measured_fn *fn;
    void *user;
};

void measuring_cancel(struct measuring *m)
{
    if (!m)
        return;
    (void)event_del(&m->readable);
    (void)close(m->fd);
    free(m);
}

/* The whole answer is written at once; its end without one: the walk took too long. */
static void on_measured(evutil_socket_t fd, short what, void *user)
{
    struct measuring *m = user;
    struct launch_measured r = {0};
    ssize_t n = read(fd, &r, sizeof r);
    struct workspace_size s = {
        .bytes = r.bytes,
        .files = r.files,
        .room = r.room,
        .total = r.total,
        .error = n == (ssize_t)sizeof r ? r.error
                 : n < 0                ? errno
                                        : ETIMEDOUT,
        .too_deep = r.too_deep,
        .gone = r.gone,
    };
    jail_measured_fn *fn = m->fn;
    void *whose = m->user;

    (void)what;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    measuring_cancel(m);
    fn(whose, &s);
}

int launched_workspace(struct jail *j, const struct workspace_ask *ask, jail_measured_fn *fn,
                       void *user, struct measuring **ret, struct err *e)
{
    struct launched *n = launched_of(j);
    struct launch_msg msg = {
        .verb = ask->discard ? LAUNCH_DISCARD : LAUNCH_MEASURE,
        .workspace_max = ask->bytes_max,
        .workspace_files = ask->files_max,
    };
    struct measuring *m;
    int pair[2], r;

    if (n->sock < 0)
        return err_set(e, ERR_HOST, "the launcher is gone");
    if (snprintf(msg.workspace, sizeof msg.workspace, "%s", ask->name) >= (int)sizeof msg.workspace)
        return err_set(e, ERR_BUG, "the name of a workspace is too long");
    m = calloc(1, sizeof *m);
    if (!m)
        return err_set(e, ERR_HOST, "out of memory");
    r = fd_pipe(pair);
    if (r < 0) {
        free(m);
        return err_sys(e, r, "pipe for the answer about a workspace");
    }
    *m = (struct measuring){.fd = pair[0], .fn = fn, .user = user};
    (void)!fd_nonblock(m->fd, true);
    (void)event_assign(&m->readable, n->loop, m->fd, EV_READ | EV_PERSIST, on_measured, m);
    (void)event_add(&m->readable, NULL);
    r = outbox_send(&n->outbox, &msg, sizeof msg, &pair[1], 1);
    if (r < 0) {
        measuring_cancel(m);
        return err_sys(e, r, "ask the launcher about a workspace");
    }
    *ret = m;
    return 0;
}
