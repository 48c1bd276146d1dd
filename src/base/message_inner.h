/* SPDX-License-Identifier: MIT */
/* What the two ways to pass messages (message_linux.c, message_posix.c) share: descriptors. */
#pragma once

#include <sys/socket.h>

#include "base/fd.h"

/* Systems without the atomic flags mark descriptors right after birth instead. */
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

union message_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * FD_PASS_MAX)];
};

/* Descriptors that go along; at most FD_PASS_MAX. */
void message_attach(struct msghdr *h, union message_control *control, const int *fds, size_t n);

/* Takes every descriptor out of what came, also those nobody asked for: what is not taken would
 * stay open for ever. How many. */
size_t message_collect(struct msghdr *h, int got[FD_PASS_MAX]);
