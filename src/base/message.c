/* SPDX-License-Identifier: MIT */
/* Messages of fd.h on SOCK_SEQPACKET: the kernel keeps them whole. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"

union message_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
};

/* Descriptors that go along; at most FD_PASS_MAX. */
static void attach(struct msghdr *h, union message_control *control, const int *fds, size_t n)
{
    struct cmsghdr *c = &control->align;

    if (n == 0)
        return;
    h->msg_control = control->bytes;
    h->msg_controllen = CMSG_SPACE(sizeof(int) * n);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * n);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
}

/* Takes every descriptor out of what came, also those that were not asked for: what is not taken
 * would stay open. Returns how many. */
static size_t collect(struct msghdr *h, int got[FD_PASS_MAX])
{
    size_t n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t bytes = c->cmsg_len - CMSG_LEN(0);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= bytes && n < FD_PASS_MAX; at += sizeof(int))
            memcpy(&got[n++], CMSG_DATA(c) + at, sizeof(int));
    }
    return n;
}

int fd_message_pair(int ret[2])
{
    return fd_socketpair(SOCK_SEQPACKET, ret);
}

int fd_send(int sock, const void *msg, size_t n, const int *fds, size_t fds_n)
{
    union message_control control = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)msg, .iov_len = n};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;

    if (n == 0 || fds_n > FD_PASS_MAX)
        return -EINVAL;
    attach(&h, &control, fds, fds_n);
    do
        sent = sendmsg(sock, &h, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return -errno;
    return (size_t)sent == n ? 0 : -EPROTO; /* a stream took a part: the caller's mistake */
}

ssize_t fd_recv(int sock, void *msg, size_t max, int *fds, size_t *inout_fds_n)
{
    union message_control control;
    struct iovec iov = {.iov_base = msg, .iov_len = max};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    int got[FD_PASS_MAX];
    size_t room = inout_fds_n ? *inout_fds_n : 0;
    size_t got_n;
    ssize_t n;

    if (inout_fds_n)
        *inout_fds_n = 0;
    do
        n = recvmsg(sock, &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    got_n = collect(&h, got);
    if ((h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || got_n > room || (n == 0 && got_n > 0)) {
        fd_close_all(got, got_n);
        return -EPROTO;
    }
    if (got_n > 0) {
        memcpy(fds, got, sizeof(int) * got_n);
        *inout_fds_n = got_n;
    }
    return n;
}

int fd_recv_exact(int sock, void *msg, size_t n, int *fds, size_t fds_n)
{
    size_t got_n = fds_n;
    ssize_t got = fd_recv(sock, msg, n, fds, &got_n);

    if (got <= 0)
        return (int)got;
    if ((size_t)got == n && got_n == fds_n)
        return 1;
    fd_close_all(fds, got_n);
    return -EPROTO;
}
