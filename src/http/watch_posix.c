/* SPDX-License-Identifier: MIT */
/*
 * The watch of watch_linux.c without epoll: such a connection is looked at every now and then. A
 * client that left is found a little later, and nothing else is different.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/os.h"
#include "http/conn.h"

enum { LOOK_MS = 200 };

void watch_conn(struct conn *c, bool on)
{
    c->watched = on;
}

static bool has_left(const struct conn *c)
{
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static void on_look(evutil_socket_t fd, short what, void *user)
{
    struct http_server *s = user;
    struct conn *c, *next;

    (void)fd, (void)what;
    for (c = LIST_FIRST(&s->conns); c; c = next) {
        next = LIST_NEXT(c, link);
        if (c->watched && has_left(c))
            conn_on_eof(c);
    }
}

int watch_open(struct http_server *s, struct err *e)
{
    const struct timeval often = {.tv_usec = LOOK_MS * 1000};

    s->watch = event_new(s->base, -1, EV_PERSIST, on_look, s);
    if (!s->watch || event_add(s->watch, &often) < 0)
        return err_set(e, ERR_HOST, "event for the watch");
    return 0;
}

void watch_close(struct http_server *s)
{
    if (s->watch)
        event_free(s->watch);
    s->watch = NULL;
}
