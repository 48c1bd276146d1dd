/* SPDX-License-Identifier: MIT */
#include "cli/stops.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

int stops_open(void)
{
    sigset_t mask;
    int fd;

    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
    fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        (void)fprintf(stderr, "sbx: signals: %s\n", strerror(errno));
    return fd;
}

int stops_take(int fd)
{
    struct signalfd_siginfo s;

    return read(fd, &s, sizeof s) == (ssize_t)sizeof s ? (int)s.ssi_signo : 0;
}
