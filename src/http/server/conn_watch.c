/* SPDX-License-Identifier: MIT */
/*
 * The watch. While nothing is read from a connection (its body is paused, or
 * enough has been read ahead), an end of the client would go unseen. libevent
 * has EV_CLOSED for that, but a reset arrives as EPOLLERR, which libevent 2.1
 * turns into EV_READ | EV_WRITE only: an event that waits for EV_CLOSED alone
 * is never called, and the loop spins. So the server keeps an epoll set of its
 * own for such connections, asks for EPOLLRDHUP (EPOLLERR and EPOLLHUP come
 * unasked), and has the loop wait for that set to become readable.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "http/server/conn.h"

enum { WATCH_BATCH = 64 };

bool watch_add(struct conn *c)
{
    struct epoll_event ev = {.events = EPOLLRDHUP, .data.ptr = c};

    return epoll_ctl(c->srv->watch.fd, EPOLL_CTL_ADD, c->fd, &ev) == 0;
}

void watch_drop(struct conn *c)
{
    (void)epoll_ctl(c->srv->watch.fd, EPOLL_CTL_DEL, c->fd, NULL);
}

static void on_watch(evutil_socket_t fd, short what, void *user)
{
    struct epoll_event ev[WATCH_BATCH];
    int n = epoll_wait(fd, ev, WATCH_BATCH, 0);

    (void)what;
    (void)user;
    /* Closed ones stay in memory until the reaper runs, so none of these pointers dangles. */
    for (int i = 0; i < n; i++)
        conn_on_eof(ev[i].data.ptr);
}

int watch_open(struct http_server *s, struct err *e)
{
    s->watch.fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->watch.fd < 0)
        return err_sys(e, -errno, "epoll");
    s->watch.event = event_new(s->base, s->watch.fd, EV_READ | EV_PERSIST, on_watch, s);
    if (!s->watch.event || event_add(s->watch.event, NULL) < 0)
        return err_set(e, ERR_HOST, "event for the watch");
    return 0;
}

void watch_close(struct http_server *s)
{
    if (s->watch.event)
        event_free(s->watch.event);
    if (s->watch.fd >= 0)
        (void)close(s->watch.fd);
    s->watch.event = NULL;
    s->watch.fd = -1;
}
