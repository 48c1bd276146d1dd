/* SPDX-License-Identifier: MIT */
#include "app/sandbox/port.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "core/port_files.h"

enum {
    READ_MAX = 32 * 1024,
    WRITE_MAX = 256 * 1024,
};

struct port {
    struct activity activity;
    const struct port_events *on;
    void *user;
    struct filework *filework; /* while it is dialled */
    int fd;                    /* owned; -1: not yet */
    struct event rd, wr;
    struct evbuffer *out; /* owned */
    bool last;            /* nothing more will be written */
    bool closed;          /* by its owner, in the midst of an event of it */
    unsigned within;      /* events that are being told */
};

static void port_free(struct port *c)
{
    activity_end(&c->activity);
    filework_free(c->filework);
    if (c->fd >= 0) {
        (void)event_del(&c->rd);
        (void)event_del(&c->wr);
        (void)close(c->fd);
    }
    if (c->out)
        evbuffer_free(c->out);
    free(c);
}

void port_close(struct port *c)
{
    if (!c)
        return;
    c->closed = true;
    if (c->within == 0)
        port_free(c);
}

/* The daemon ends; the owner's call has ended before. */
static void port_drop(struct activity *a)
{
    port_free((struct port *)((char *)a - offsetof(struct port, activity)));
}

/* Back from an event. False: it was closed there, and is freed. */
static bool back(struct port *c)
{
    if (--c->within > 0 || !c->closed)
        return !c->closed;
    port_free(c);
    return false;
}

static void tell_ended(struct port *c)
{
    c->within++;
    c->on->ended(c->user);
    (void)back(c);
}

/* ---- bytes ---- */

static void on_readable(evutil_socket_t fd, short what, void *user)
{
    struct port *c = user;
    char room[READ_MAX];
    ssize_t n = recv(fd, room, sizeof room, 0);
    bool more;

    (void)what;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        (void)event_del(&c->rd);
        tell_ended(c);
        return;
    }
    c->within++;
    more = c->on->data(c->user, room, (size_t)n);
    if (back(c) && !more)
        (void)event_del(&c->rd);
}

void port_resume(struct port *c)
{
    if (c->fd >= 0)
        (void)event_add(&c->rd, NULL);
}

/* As much as it takes. A connection that broke is told by reading. */
static void flush(struct port *c)
{
    while (evbuffer_get_length(c->out) > 0) {
        int n = evbuffer_write_atmost(c->out, c->fd, WRITE_MAX);

        if (n > 0)
            continue;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            (void)evbuffer_drain(c->out, evbuffer_get_length(c->out));
        else
            (void)event_add(&c->wr, NULL);
        break;
    }
    if (c->last && evbuffer_get_length(c->out) == 0)
        (void)shutdown(c->fd, SHUT_WR);
}

static void on_writable(evutil_socket_t fd, short what, void *user)
{
    struct port *c = user;

    (void)fd, (void)what;
    flush(c);
    if (evbuffer_get_length(c->out) > 0)
        return;
    c->within++;
    c->on->drained(c->user);
    (void)back(c);
}

size_t port_write(struct port *c, const void *p, size_t n)
{
    (void)!evbuffer_add(c->out, p, n);
    if (c->fd >= 0 && !event_pending(&c->wr, EV_WRITE, NULL))
        flush(c);
    return evbuffer_get_length(c->out);
}

void port_write_end(struct port *c)
{
    c->last = true;
    if (c->fd >= 0 && evbuffer_get_length(c->out) == 0)
        (void)shutdown(c->fd, SHUT_WR);
}

/* ---- the dial ---- */

static void fail(struct port *c, int sys)
{
    c->within++;
    c->on->failed(c->user, sys == FILE_ENDED     ? PORT_GONE
                           : sys == FILE_BUSY    ? PORT_BUSY
                           : sys == ECONNREFUSED ? PORT_CLOSED
                                                 : PORT_FAILED);
    (void)back(c);
}

static void on_dialled(void *user, struct file_result *r)
{
    struct port *c = user;
    struct event_base *base = c->activity.home->all->app->base;
    int one = 1;

    c->filework = NULL;
    if (r->sys != 0) {
        fail(c, r->sys);
        return;
    }
    c->fd = take_fd(&r->fd);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)event_assign(&c->rd, base, c->fd, EV_READ | EV_PERSIST, on_readable, c);
    (void)event_assign(&c->wr, base, c->fd, EV_WRITE, on_writable, c);
    (void)event_add(&c->rd, NULL);
    c->within++;
    c->on->opened(c->user);
    if (back(c))
        flush(c);
}

int port_dial(struct persistent *p, uint16_t number, const struct port_events *on, void *user,
              struct port **ret, struct err *e)
{
    const struct file_order o = {.verb = FILE_CONNECT, .port = number};
    struct port *c = calloc(1, sizeof *c);

    if (!c)
        return err_set(e, ERR_HOST, "no memory for a connection");
    *c = (struct port){.on = on, .user = user, .fd = -1, .out = evbuffer_new()};
    if (!c->out || filework_start(&p->inside.files, &o, on_dialled, c, &c->filework, e) < 0) {
        if (!c->out)
            (void)err_set(e, ERR_HOST, "no memory for a connection");
        port_free(c);
        return -1;
    }
    activity_begin(p, &c->activity, port_drop);
    *ret = c;
    return 0;
}
