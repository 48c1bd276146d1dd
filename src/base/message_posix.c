/* SPDX-License-Identifier: MIT */
/*
 * Messages of fd.h where no kind of socket both keeps messages whole and tells its end (macOS): a
 * stream, on which each message has its length in front.
 *
 * Nothing is kept beside the socket: what was begun is finished before the call returns. A peer may
 * be an enemy, so whoever does not want to wait (O_NONBLOCK) waits for the rest of a message, or
 * for room for it, only so long; then the connection ends, because nobody could find the beginning
 * of the next one. The buffers hold several of the largest messages that are sent, so among friends
 * that wait is none.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/message_inner.h"

enum {
    MESSAGE_MAX = 1 << 20,
    BUFFER = 256 << 10,
    REST_MS = 200, /* for the rest of a message that has begun */
    ROOM_MS = 2000,
};

/* Out of step for good: what comes next is the end, on both sides. */
static int give_up(int sock, int r)
{
    (void)shutdown(sock, SHUT_RDWR);
    return r;
}

/* As much room as the system gives; less is only slower. */
static void widen(int sock)
{
    static const int size = BUFFER;
#ifdef SO_NOSIGPIPE
    static const int on = 1;

    (void)setsockopt(sock, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    (void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    (void)setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

int fd_message_pair(int ret[2])
{
    int r = fd_socketpair(SOCK_STREAM, ret);

    if (r == 0) {
        widen(ret[0]);
        widen(ret[1]);
    }
    return r;
}

/* 0 when there may be more, -ETIMEDOUT. */
static int await(int sock, short events, uint64_t until_us)
{
    struct pollfd p = {.fd = sock, .events = events};
    uint64_t now = clock_us();
    int r = now < until_us ? poll(&p, 1, (int)((until_us - now) / 1000) + 1) : 0;

    return r > 0 || (r < 0 && errno == EINTR) ? 0 : -ETIMEDOUT;
}

/* ---- sending ---- */

static ssize_t send_some(int sock, const struct msghdr *h)
{
    ssize_t n;

    do
        n = sendmsg(sock, h, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Behind the first `sent` bytes, with which the descriptors went. */
static int send_rest(int sock, struct iovec iov[2], size_t sent)
{
    const uint64_t until = clock_us() + ROOM_MS * UINT64_C(1000);

    for (;;) {
        struct msghdr h = {.msg_iov = iov, .msg_iovlen = 2};
        ssize_t n;

        for (int i = 0; i < 2; i++) {
            size_t skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;

            iov[i].iov_base = (char *)iov[i].iov_base + skip;
            iov[i].iov_len -= skip;
            sent -= skip;
        }
        if (iov[0].iov_len + iov[1].iov_len == 0)
            return 0;
        n = send_some(sock, &h);
        if (n == -EAGAIN && await(sock, POLLOUT, until) < 0)
            return give_up(sock, -EPIPE);
        if (n < 0 && n != -EAGAIN)
            return give_up(sock, (int)n);
        sent = n > 0 ? (size_t)n : 0;
    }
}

int fd_send(int sock, const void *msg, size_t n, const int *fds, size_t fds_n)
{
    union message_control control = {0};
    uint32_t head = (uint32_t)n;
    struct iovec iov[2] = {
        {.iov_base = &head,                  .iov_len = sizeof head},
        {.iov_base = (void *)(uintptr_t)msg, .iov_len = n          },
    };
    struct msghdr h = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t sent;

    if (n == 0 || n > MESSAGE_MAX || fds_n > FD_PASS_MAX)
        return -EINVAL;
    message_attach(&h, &control, fds, fds_n);
    sent = send_some(sock, &h);
    if (sent < 0)
        return (int)sent;
    return (size_t)sent == sizeof head + n ? 0 : send_rest(sock, iov, (size_t)sent);
}

/* ---- receiving ---- */

struct incoming {
    int sock;
    int got[FD_PASS_MAX]; /* owned */
    size_t got_n;
    bool lost;         /* descriptors that there was no room for */
    uint64_t until_us; /* 0: nothing has come yet */
};

static void keep(struct incoming *in, struct msghdr *h)
{
    int got[FD_PASS_MAX];
    size_t n = message_collect(h, got), fit = FD_PASS_MAX - in->got_n;

    fit = n < fit ? n : fit;
    memcpy(in->got + in->got_n, got, fit * sizeof *got);
    in->got_n += fit;
    in->lost |= fit < n || (h->msg_flags & MSG_CTRUNC);
    fd_close_all(got + fit, n - fit);
}

/* Exactly n bytes: 1. 0 and -EAGAIN only if nothing has come before. */
static int take(struct incoming *in, void *to, size_t n)
{
    size_t have = 0;

    while (have < n) {
        union message_control control;
        struct iovec iov = {.iov_base = (char *)to + have, .iov_len = n - have};
        struct msghdr h = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
        ssize_t r = recvmsg(in->sock, &h, MSG_CMSG_CLOEXEC);

        if (r < 0 && errno == EINTR)
            continue;
        if (r > 0)
            keep(in, &h);
        else if (in->until_us == 0)
            return r < 0 ? -errno : 0;
        else if (r == 0 || errno != EAGAIN || await(in->sock, POLLIN, in->until_us) < 0)
            return give_up(in->sock, -EPROTO);
        if (in->until_us == 0)
            in->until_us = clock_us() + REST_MS * UINT64_C(1000);
        have += r > 0 ? (size_t)r : 0;
    }
    return 1;
}

/* The whole of one that is too long, so that the next is found. */
static int pass_over(struct incoming *in, size_t n)
{
    char part[4096];
    int r = n <= MESSAGE_MAX ? 1 : give_up(in->sock, -EPROTO);

    while (n > 0 && r > 0) {
        size_t some = n < sizeof part ? n : sizeof part;

        r = take(in, part, some);
        n -= some;
    }
    return -EPROTO;
}

static ssize_t receive(struct incoming *in, void *msg, size_t max)
{
    uint32_t head;
    int r = take(in, &head, sizeof head);

    if (r <= 0)
        return r;
    if (head == 0)
        return give_up(in->sock, -EPROTO);
    if (head > max)
        return pass_over(in, head);
    r = take(in, msg, head);
    return r < 0 ? r : (ssize_t)head;
}

ssize_t fd_recv(int sock, void *msg, size_t max, int *fds, size_t *inout_fds_n)
{
    struct incoming in = {.sock = sock};
    size_t room = inout_fds_n ? *inout_fds_n : 0;
    ssize_t n = receive(&in, msg, max);

    if (inout_fds_n)
        *inout_fds_n = 0;
    if (n <= 0 || in.lost || in.got_n > room) {
        fd_close_all(in.got, in.got_n);
        return n <= 0 ? n : -EPROTO;
    }
    if (in.got_n > 0) {
        memcpy(fds, in.got, sizeof(int) * in.got_n);
        *inout_fds_n = in.got_n;
    }
    return n;
}
