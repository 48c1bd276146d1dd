/* SPDX-License-Identifier: MIT */
/*
 * What started the daemon is told how far it is: lines to the datagram socket that $NOTIFY_SOCKET
 * names, as service managers understand them (systemd's Type=notify).
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

struct supervisor {
    struct sockaddr_un to;
    socklen_t to_n; /* 0: nobody asked */
    int fd;         /* owned; -1: none */
};

/* Takes the variable out of the environment: it is not for other programs. */
void supervisor_find(struct supervisor *s);
void supervisor_open(struct supervisor *s);
void supervisor_close(struct supervisor *s);
/* One or several lines, as "READY=1". One that cannot be told is not told. */
void supervisor_tell(const struct supervisor *s, const char *lines);
