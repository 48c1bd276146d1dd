/* SPDX-License-Identifier: MIT */
#include "init/first.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/own_process.h"
#include "init/steps.h"

/* Ignored signals stay ignored across exec, and the guard ignores some. */
static void reset_signals(void)
{
    static const int changed[] = {SIGPIPE, SIGINT, SIGTERM, SIGCHLD, SIGXFSZ};
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (size_t i = 0; i < ARRAY_LEN(changed); i++)
        (void)signal(changed[i], SIG_DFL);
}

/* In the new process; fds: job, in, out, err. Whatever else is open in init it must not get. */
static int take_places(const int fds[INIT_FDS_SPAWN])
{
    static const int target[INIT_FDS_SPAWN] = {3, 0, 1, 2};
    int moved[INIT_FDS_SPAWN];

    for (size_t i = 0; i < INIT_FDS_SPAWN; i++) {
        moved[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64); /* a source may sit on another's target */
        if (moved[i] < 0)
            return -errno;
    }
    for (size_t i = 0; i < INIT_FDS_SPAWN; i++)
        if (dup2(moved[i], target[i]) < 0)
            return -errno;
    return fd_close_from(4);
}

/* What cannot be told through the places it could not take is told through the first of each. */
__attribute__((noreturn)) static void fail_process(const int fds[INIT_FDS_SPAWN], const char *what,
                                                   int r)
{
    (void)dprintf(fds[INIT_FDS_SPAWN - 1], "%s: %s\n", what, strerror(-r));
    _exit(126);
}

/* In the new process. fds: job, in, out, err. */
void first_become(const struct init_host *host, const int fds[INIT_FDS_SPAWN])
{
    int r = process_apart();

    if (r < 0)
        fail_process(fds, "session", r);
    reset_signals();
    r = take_places(fds);
    if (r < 0)
        fail_process(fds, "standard streams", r);
    /* Its own memory is the tenant's to inspect; only init's is not. */
    (void)!process_visible(true);
    host->run(host->user);
    _exit(127);
}

void first_await(const struct init_host *host, const struct cpus *cpus, int gate)
{
    static const int fds[INIT_FDS_SPAWN] = {INIT_FD_JOB, INIT_FD_IN, INIT_FD_OUT, INIT_FD_ERR};
    char open;

    if (fd_read_full(gate, &open, sizeof open) != sizeof open)
        _exit(126); /* pid 1 has said why */
    process_spread(cpus);
    first_become(host, fds);
}
