/* SPDX-License-Identifier: MIT */
/* In a zygote: it waits for the launcher's messages and forks keepers. */
#include "zygote/serve.h"

#include <errno.h>
#include <signal.h>
#include <speedups.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/first.h"
#include "init/warm.h"
#include "zygote/zygote.h"

static void settle(void *user)
{
    const struct zygote_host *host = user;

    if (SPEEDUP_PINNED_PAGES)
        hot_pin(host->hot);
}

static pid_t fork_copy(void *user)
{
    const struct zygote_host *host = user;

    return host->fork ? host->fork() : fork();
}

__attribute__((noreturn)) static void begin(void *user, const struct cpus *cpus, int gate)
{
    const struct zygote_host *host = user;

    if (host->warm)
        warm_serve(host->warm, cpus, gate);
    first_await(&host->first, cpus, gate);
}

static void become_keeper(const struct zygote_msg *m, const int *fds, size_t n, struct keeper *ret)
{
    size_t at = 1 + (m->devices != 0);

    *ret = (struct keeper){.kind = &keeper_native,
                           .filters = ret->filters,
                           .copies = ret->copies,
                           .slot = m->slot,
                           .host = m->host,
                           .program = -1};
    ret->sock = fds[0];
    ret->mntns = -1; /* we are there already */
    ret->devices = m->devices && n > 1 ? fds[1] : -1;
    for (size_t i = 0; i < CG_CONTROLLER_COUNT; i++)
        ret->procs[i] = (m->procs_mask & BIT(i)) && at < n ? fds[at++] : -1;
    (void)signal(SIGCHLD, SIG_DFL);
}

void zygote_serve(const struct filters *filters, struct zygote_host *host, struct keeper *ret)
{
    static const char warm = 1;

    host->copies =
        (struct copies){.user = host, .settle = settle, .fork = fork_copy, .begin = begin};
    ret->filters = filters;
    ret->copies = &host->copies;
    (void)!fd_send(ZYGOTE_FD, &warm, sizeof warm, NULL, 0);
    (void)signal(SIGCHLD, SIG_IGN); /* keepers report to the launcher, not to us */
    for (;;) {
        int fds[2 + CG_CONTROLLER_COUNT];
        size_t n = ARRAY_LEN(fds);
        struct zygote_msg m;
        ssize_t got = fd_recv(ZYGOTE_FD, &m, sizeof m, fds, &n);
        pid_t pid;

        if (got != sizeof m || n < 1)
            _exit(got != 0);
        pid = fork_copy(host);
        if (pid == 0) {
            become_keeper(&m, fds, n, ret);
            return;
        }
        fd_close_all(fds, n);
    }
}
