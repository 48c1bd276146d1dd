/* SPDX-License-Identifier: MIT */
/*
 * The socket side of a connection: reading, writing, noticing that the client
 * left, and closing so that it still hears the answer.
 *
 * The watch. While nothing is read from a connection (its body is paused, or
 * enough has been read ahead), an end of the client would go unseen. libevent
 * has EV_CLOSED for that, but a reset arrives as EPOLLERR, which libevent 2.1
 * turns into EV_READ | EV_WRITE only: an event that waits for EV_CLOSED alone
 * is never called, and the loop spins. So the server keeps an epoll set of its
 * own for such connections, asks for EPOLLRDHUP (EPOLLERR and EPOLLHUP come
 * unasked), and has the loop wait for that set to become readable.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn.h"

enum { WATCH_BATCH = 64 };

size_t conn_pending(const struct conn *c)
{
    return c->out ? evbuffer_get_length(c->out) : 0;
}

struct evbuffer *conn_out(struct conn *c)
{
    if (!c->out)
        c->out = evbuffer_new();
    c->broken |= !c->out;
    return c->out;
}

ssize_t conn_read(struct conn *c, size_t max)
{
    ssize_t n;

    do
        n = recv(c->fd, c->srv->rbuf, max < CONN_READ_MAX ? max : CONN_READ_MAX, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? -1 : -2;
    c->srv->count.bytes_in += (uint64_t)n;
    return n;
}

static void wrote(struct conn *c, size_t n)
{
    c->sent += n;
    c->srv->count.bytes_out += n;
}

/* A slice of what waits in memory. 1 to go on, 0 to wait, -1 when the client is gone. */
static int write_out(struct conn *c, size_t *room)
{
    int n = evbuffer_write_atmost(c->out, c->fd, (ev_ssize_t)*room);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    wrote(c, (size_t)n);
    *room -= (size_t)n;
    if (evbuffer_get_length(c->out) == 0) {
        evbuffer_free(c->out);
        c->out = NULL;
    }
    return n > 0;
}

/* For files that sendfile() refuses: some pseudo file systems. */
static ssize_t copy_file(struct conn *c, size_t want)
{
    ssize_t n = pread(c->file.fd, c->srv->rbuf, want < CONN_READ_MAX ? want : CONN_READ_MAX,
                      (off_t)c->file.at);

    return n > 0 ? send(c->fd, c->srv->rbuf, (size_t)n, MSG_NOSIGNAL) : n;
}

static int write_file(struct conn *c, size_t *room)
{
    struct conn_file *f = &c->file;
    off_t at = (off_t)f->at;
    size_t want = f->left < *room ? (size_t)f->left : *room;
    ssize_t n = sendfile(c->fd, f->fd, &at, want);

    if (n < 0 && (errno == EINVAL || errno == ENOSYS))
        n = copy_file(c, want);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        return -1; /* the file shrank: a promised length cannot be kept */
    wrote(c, (size_t)n);
    f->at += (uint64_t)n;
    f->left -= (uint64_t)n;
    *room -= (size_t)n;
    if (f->left == 0) {
        (void)close(f->fd);
        f->fd = -1;
    }
    return 1;
}

void conn_flush(struct conn *c)
{
    size_t room = CONN_WRITE_MAX;
    int more = 1;

    while (more > 0 && room > 0 && (c->out || c->file.fd >= 0))
        more = c->out ? write_out(c, &room) : write_file(c, &room);
    if (more < 0)
        conn_close(c);
    else if (c->out || c->file.fd >= 0)
        (void)event_add(&c->wr, NULL);
}

static void watch(struct conn *c, bool on)
{
    struct epoll_event ev = {.events = EPOLLRDHUP, .data.ptr = c};

    if (c->watched == on)
        return;
    if (epoll_ctl(c->srv->watch_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, c->fd, &ev) == 0)
        c->watched = on;
    else if (on)
        c->broken = true; /* out of memory: better to lose a client than to miss its end */
}

static void read_on(struct conn *c, bool on)
{
    if (c->reading == on)
        return;
    if (on)
        (void)event_add(&c->rd, NULL);
    else
        (void)event_del(&c->rd);
    c->reading = on;
}

size_t conn_read_room(const struct conn *c)
{
    bool answering = c->state == CONN_ANSWER || conn_body_paused(c);

    if (c->eof || c->state == CONN_CLOSING || c->state == CONN_DEAD)
        return 0;
    if (answering)
        return c->in.n < CONN_AHEAD_MAX ? CONN_AHEAD_MAX - c->in.n : 0;
    return conn_pending(c) < HTTP_STREAM_HIGH ? CONN_READ_MAX : 0;
}

void conn_listen(struct conn *c)
{
    bool reads = conn_read_room(c) > 0;

    read_on(c, reads);
    watch(c, !reads && c->call && !c->call->answered && !c->eof);
}

void conn_deaf(struct conn *c)
{
    read_on(c, false);
    watch(c, false);
}

/* Everything is sent. Close now, or wait a moment for the client to stop sending. */
void conn_linger(struct conn *c)
{
    if (!c->linger || c->eof || shutdown(c->fd, SHUT_WR) < 0) {
        conn_close(c);
        return;
    }
    conn_move(c, CONN_LINGER);
    buf_done(&c->in);
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
    s->watch_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->watch_fd < 0)
        return err_sys(e, -errno, "epoll");
    s->watch = event_new(s->base, s->watch_fd, EV_READ | EV_PERSIST, on_watch, s);
    if (!s->watch || event_add(s->watch, NULL) < 0)
        return err_set(e, ERR_HOST, "event for the watch");
    return 0;
}

void watch_close(struct http_server *s)
{
    if (s->watch)
        event_free(s->watch);
    if (s->watch_fd >= 0)
        (void)close(s->watch_fd);
    s->watch = NULL;
    s->watch_fd = -1;
}
