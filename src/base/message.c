/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/message_inner.h"

void message_attach(struct msghdr *h, union message_control *control, const int *fds, size_t n)
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

size_t message_collect(struct msghdr *h, int got[FD_PASS_MAX])
{
    size_t n = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        size_t bytes = c->cmsg_len - CMSG_LEN(0);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= bytes && n < FD_PASS_MAX; at += sizeof(int)) {
            memcpy(&got[n], CMSG_DATA(c) + at, sizeof(int));
            if (!MSG_CMSG_CLOEXEC)
                (void)fcntl(got[n], F_SETFD, FD_CLOEXEC);
            n++;
        }
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
