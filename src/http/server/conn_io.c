/* SPDX-License-Identifier: MIT */
/*
 * The socket side of a connection: reading, writing, noticing that the client
 * left, and closing so that it still hears the answer.
 */
#include <errno.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/os.h"
#include "http/server/conn.h"

size_t conn_pending(const struct conn *c)
{
    return c->out ? evbuffer_get_length(c->out) : 0;
}

bool conn_is_sending(const struct conn *c)
{
    return conn_pending(c) > 0 || c->file.fd >= 0;
}

struct evbuffer *conn_out(struct conn *c)
{
    if (!c->out)
        c->out = evbuffer_new();
    if (!c->out)
        conn_after(c, NEXT_BREAK);
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

    while (more > 0 && room > 0 && conn_is_sending(c))
        more = conn_pending(c) > 0 ? write_out(c, &room) : write_file(c, &room);
    if (more < 0)
        conn_close(c);
    else if (conn_is_sending(c))
        (void)event_add(&c->wr, NULL);
}

static void set_ear(struct conn *c, enum conn_ear to)
{
    if (c->ear == to || c->ear == EAR_ENDED)
        return;
    if (c->ear == EAR_READ)
        (void)event_del(&c->rd);
    if (c->ear == EAR_WATCH)
        watch_drop(c);
    c->ear = to;
    if (to == EAR_READ)
        (void)event_add(&c->rd, NULL);
    if (to == EAR_WATCH && !watch_add(c)) {
        c->ear = EAR_NONE;
        conn_after(c, NEXT_BREAK); /* better to lose a client than to miss its end */
    }
}

size_t conn_read_room(const struct conn *c)
{
    bool answering = c->state == CONN_ANSWER || conn_body_paused(c);

    if (c->ear == EAR_ENDED || c->state == CONN_CLOSING || c->state == CONN_DEAD)
        return 0;
    if (answering)
        return c->in.n < CONN_AHEAD_MAX ? CONN_AHEAD_MAX - c->in.n : 0;
    return conn_pending(c) < HTTP_STREAM_HIGH ? CONN_READ_MAX : 0;
}

void conn_listen(struct conn *c)
{
    bool owed = c->call && c->call->state != CALL_ANSWERED;

    set_ear(c, conn_read_room(c) > 0 ? EAR_READ : owed ? EAR_WATCH : EAR_NONE);
}

void conn_ended(struct conn *c)
{
    set_ear(c, EAR_ENDED);
}

void conn_deaf(struct conn *c)
{
    set_ear(c, EAR_NONE);
}

/* Everything is sent. Close now, or wait a moment for the client to stop sending. */
void conn_linger(struct conn *c)
{
    bool unread = c->next == NEXT_LINGER || c->in.n > 0;

    if (!unread || c->ear == EAR_ENDED || shutdown(c->fd, SHUT_WR) < 0) {
        conn_close(c);
        return;
    }
    conn_move(c, CONN_LINGER);
    buf_done(&c->in);
}
