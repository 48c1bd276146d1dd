/* SPDX-License-Identifier: MIT */
#include "init/ending.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/child_signals.h"
#include "init/process_tree.h"

enum { PASS_MS = 5 };

/* Everything but us, then somebody may be taken in. kill(-1) cannot miss: a fork in progress fails
 * once a kill is pending. Where others live beside us only our own tree may be meant, and what
 * escapes a pass by forking is found by the next. */
static pid_t kill_and_wait(const struct init *conf, int signals, int *status)
{
    struct pollfd p = {.fd = signals, .events = POLLIN};

    if (!conf->shared) {
        (void)kill(-1, SIGKILL);
        return waitpid(-1, status, 0);
    }
    (void)tree_kill(getpid(), NULL, 0);
    if (poll(&p, 1, PASS_MS) > 0)
        signals_take(signals);
    return waitpid(-1, status, WNOHANG);
}

void ending_wait(const struct init *conf, int signals, pid_t first, int *first_status)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid < 0 && errno == ECHILD)
            return; /* orphans come to us, so nothing else is there */
        if (pid == 0)
            pid = kill_and_wait(conf, signals, &status);
        if (pid > 0 && pid == first && first_status)
            *first_status = status;
    }
}
