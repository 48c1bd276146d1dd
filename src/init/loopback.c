/* SPDX-License-Identifier: MIT */
#include "init/loopback.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/os.h"

enum { CONNECT_MS = 2000 };

static int connect_to(const struct sockaddr *a, socklen_t n)
{
    cleanup_close int fd = os_socket(a->sa_family, SOCK_STREAM, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t size = sizeof(int);
    int error = 0;

    if (fd < 0)
        return -errno;
    if (connect(fd, a, n) < 0) {
        if (errno != EINPROGRESS)
            return -errno;
        if (poll(&p, 1, CONNECT_MS) <= 0)
            return -ETIMEDOUT;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error)
            return -(error ? error : errno);
    }
    return take_fd(&fd);
}

int loopback_connect(uint16_t port)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int first = connect_to((struct sockaddr *)&v4, sizeof v4), second;

    if (first >= 0)
        return first;
    second = connect_to((struct sockaddr *)&v6, sizeof v6);
    return second >= 0 ? second : first;
}
