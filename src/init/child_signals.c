/* SPDX-License-Identifier: MIT */
#include "init/child_signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "wire/init_control.h"

int signals_open(unsigned flags)
{
    sigset_t blocked, heard;
    int fd;

    (void)sigemptyset(&heard);
    (void)sigaddset(&heard, SIGCHLD);
    if (flags & SIGNALS_DONE) /* blocked: else pid 1 would never get it */
        (void)sigaddset(&heard, INIT_SIGNAL_DONE);
    blocked = heard;
    if (flags & SIGNALS_ALONE)
        (void)sigfillset(&blocked);
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
    fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

bool signals_next(int fd, pid_t from, int *ret_value)
{
    struct signalfd_siginfo si;

    while (read(fd, &si, sizeof si) == sizeof si)
        if (si.ssi_signo == INIT_SIGNAL_DONE && si.ssi_code == SI_QUEUE &&
            (pid_t)si.ssi_pid == from) {
            *ret_value = si.ssi_int;
            return true;
        }
    return false;
}

void signals_take(int fd)
{
    struct signalfd_siginfo si;

    (void)!read(fd, &si, sizeof si);
}
