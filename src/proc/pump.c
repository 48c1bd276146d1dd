/* SPDX-License-Identifier: MIT */
#include "proc/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/os.h"
#include "base/utf8.h"

/* Sockets and pipes alike: SIGPIPE is ignored in the daemon, so a vanished reader is an errno. */
static ssize_t write_some(int fd, const void *p, size_t n)
{
    ssize_t r;

    do
        r = write(fd, p, n);
    while (r < 0 && errno == EINTR);
    return r;
}

/* The kernel has no room just now. */
static bool must_wait(int error)
{
    return error == EAGAIN || error == ENOBUFS || error == ENOMEM;
}

static void feed_end(struct feed *f)
{
    if (event_initialized(&f->writable))
        (void)event_del(&f->writable);
    buf_done(&f->rest);
    f->rest_at = 0;
    if (f->close_at_end && *f->fd >= 0) {
        (void)close(*f->fd);
        *f->fd = -1;
    }
}

static void feed_on_writable(evutil_socket_t fd, short what, void *user)
{
    struct feed *f = user;
    ssize_t n = write_some(fd, f->rest.p + f->rest_at, f->rest.n - f->rest_at);

    (void)what;
    if (n < 0 && must_wait(errno))
        return;
    if (n > 0)
        f->rest_at += (size_t)n;
    if (n >= 0 && f->rest_at < f->rest.n)
        return;
    f->broken = n < 0; /* nobody reads any more */
    feed_end(f);
    if (f->idle)
        f->idle(f->user);
}

/* Keeps what follows the first `skip` bytes of the pieces. */
static void feed_keep(struct feed *f, const struct iovec *pieces, size_t pieces_n, size_t skip)
{
    for (size_t i = 0; i < pieces_n; i++) {
        size_t n = pieces[i].iov_len;
        size_t gone = skip < n ? skip : n;

        skip -= gone;
        if (n > gone)
            (void)buf_put(&f->rest, (const char *)pieces[i].iov_base + gone, n - gone);
    }
}

void feed_release(struct feed *f, struct event_base *base)
{
    (void)event_assign(&f->writable, base, *f->fd, EV_WRITE | EV_PERSIST, feed_on_writable, f);
    (void)event_add(&f->writable, NULL);
}

void feed_start(struct feed *f, struct event_base *base, int *fd, bool close_at_end,
                struct iovec *pieces, size_t pieces_n)
{
    size_t total = 0;
    ssize_t n = 0;

    for (size_t i = 0; i < pieces_n; i++)
        total += pieces[i].iov_len;
    *f = (struct feed){.fd = fd, .close_at_end = close_at_end, .rest = BUF_INIT(total)};
    if (total > 0) {
        do
            n = writev(*fd, pieces, (int)pieces_n);
        while (n < 0 && errno == EINTR);
    }
    f->broken = n < 0 && !must_wait(errno);
    if (f->broken || (n >= 0 && (size_t)n == total)) {
        feed_end(f);
        return;
    }
    feed_keep(f, pieces, pieces_n, n < 0 ? 0 : (size_t)n);
    feed_release(f, base);
}

void feed_hold(struct feed *f, int *fd, struct iovec *pieces, size_t pieces_n)
{
    size_t total = 0;

    for (size_t i = 0; i < pieces_n; i++)
        total += pieces[i].iov_len;
    *f = (struct feed){.fd = fd, .rest = BUF_INIT(total)};
    feed_keep(f, pieces, pieces_n, 0);
}

int feed_more(struct feed *f, struct event_base *base, const void *p, size_t n, size_t most)
{
    struct iovec piece = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
    size_t waiting = feed_waiting(f);
    struct feed was = *f;

    if (*f->fd < 0 || f->broken || n > most || waiting > most - n)
        return -1;
    if (waiting == 0) {
        feed_done(f);
        feed_start(f, base, f->fd, f->close_at_end, &piece, 1);
        f->idle = was.idle;
        f->user = was.user;
        return 0;
    }
    if (f->rest_at > waiting) { /* what was written does not pile up */
        buf_consume(&f->rest, f->rest_at);
        f->rest_at = 0;
    }
    f->rest.max = f->rest.n + n;
    return buf_put(&f->rest, p, n);
}

void feed_close(struct feed *f)
{
    f->close_at_end = true;
    if (feed_waiting(f) == 0 && *f->fd >= 0)
        feed_end(f);
}

void feed_done(struct feed *f)
{
    if (f->fd && event_initialized(&f->writable))
        (void)event_del(&f->writable);
    buf_done(&f->rest);
    f->rest_at = 0;
}

int capture_start(struct capture *c, struct event_base *base, event_callback_fn fn, void *user)
{
    if (!capture_is_open(c) || event_initialized(&c->readable))
        return 0;
    (void)event_assign(&c->readable, base, *c->fd, EV_READ | EV_PERSIST, fn, user);
    return c->paused ? 0 : event_add(&c->readable, NULL);
}

void capture_pause(struct capture *c)
{
    c->paused = true;
    capture_done(c);
}

void capture_resume(struct capture *c)
{
    c->paused = false;
    if (capture_is_open(c) && event_initialized(&c->readable))
        (void)event_add(&c->readable, NULL);
}

void capture_done(struct capture *c)
{
    if (c->fd && event_initialized(&c->readable))
        (void)event_del(&c->readable);
}

static void capture_close(struct capture *c)
{
    capture_done(c);
    (void)close(*c->fd);
    *c->fd = -1;
}

static void capture_take(struct capture *c, const char *p, size_t n)
{
    size_t room = c->keep_max - c->keep->n;

    if (c->sink) {
        c->sink(c->user, c, p, n);
        return;
    }
    if (n <= room) {
        if (buf_put(c->keep, p, n) < 0)
            *c->truncated = true;
        return;
    }
    *c->truncated = true;
    if (buf_put(c->keep, p, room) < 0 || !c->keep->p)
        return;
    c->keep->n -= utf8_incomplete_tail(c->keep->p, c->keep->n);
    c->keep->p[c->keep->n] = '\0';
}

static ssize_t discard(int fd, const struct pump_scratch *s)
{
    return os_discard(fd, s->null, PUMP_DISCARD);
}

bool capture_read(struct capture *c, struct pump_scratch *s)
{
    size_t turn = 0;

    while (turn < PUMP_TURN && !c->paused) {
        ssize_t n = *c->truncated ? discard(*c->fd, s) : read(*c->fd, s->bytes, sizeof s->bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0 && !c->sink && !*c->truncated) { /* the loss is reported, the program goes on */
            *c->truncated = true;
            continue;
        }
        if (n <= 0) {
            capture_close(c);
            return false;
        }
        if (!*c->truncated)
            capture_take(c, s->bytes, (size_t)n);
        turn += (size_t)n;
    }
    return true;
}
