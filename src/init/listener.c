/* SPDX-License-Identifier: MIT */
#include "init/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/os.h"
#include "core/net_ports.h"
#include "wire/init_control.h"

enum { BACKLOG = 64 };

static int listener_open(int64_t port)
{
    bool datagram = port & NET_PORT_DATAGRAM;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr =
                                 htonl(port & NET_PORT_EVERY ? INADDR_ANY : INADDR_LOOPBACK)};
    cleanup_close int fd = os_socket(AF_INET, datagram ? SOCK_DGRAM : SOCK_STREAM, 0);
    int one = 1;

    /* What is left of connections of an earlier listener is not in the way. */
    if (fd < 0 || (!datagram && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0) ||
        bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || (!datagram && listen(fd, BACKLOG) < 0))
        return -errno;
    return take_fd(&fd);
}

void listener_hand_out(int ctl, int64_t port)
{
    cleanup_close int fd = listener_open(port);
    struct init_msg m = {.verb = INIT_LISTENING, .arg = port, .status = fd < 0 ? -fd : 0};

    if (fd_send(ctl, &m, sizeof m, &fd, fd >= 0 ? 1 : 0) < 0)
        _exit(0);
}
