/* SPDX-License-Identifier: MIT */
#include "app/daemon/supervisor.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

void supervisor_find(struct supervisor *s)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t n = path ? strlen(path) : 0;

    *s = (struct supervisor){.to.sun_family = AF_UNIX, .fd = -1};
    if (n > 1 && n < sizeof s->to.sun_path && (path[0] == '/' || path[0] == '@')) {
        memcpy(s->to.sun_path, path, n);
        if (path[0] == '@') /* a name of the abstract namespace */
            s->to.sun_path[0] = '\0';
        s->to_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    }
    (void)unsetenv("NOTIFY_SOCKET");
}

void supervisor_open(struct supervisor *s)
{
    if (s->to_n == 0)
        return;
    s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s->fd >= 0 && connect(s->fd, (struct sockaddr *)&s->to, s->to_n) < 0)
        fd_close_all(&s->fd, 1);
}

void supervisor_close(struct supervisor *s)
{
    fd_close_all(&s->fd, 1);
}

void supervisor_tell(const struct supervisor *s, const char *lines)
{
    if (s->fd >= 0)
        (void)send(s->fd, lines, strlen(lines), MSG_DONTWAIT | MSG_NOSIGNAL);
}
