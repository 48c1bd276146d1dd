/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/ending.h"
#include "launch/process.h"
#include "launch/tree.h"

enum {
    PASS_MS = 5,
    PASSES_MAX = 1000, /* then the launcher has its turn */
};

/* One pass. A user that nobody else has is killed as a whole, which cannot miss. True when nothing
 * was left to kill. */
static bool kill_all(const struct init *conf)
{
    if (conf->own_user)
        (void)kill(-1, SIGKILL);
    return (conf->own_user ? tree_kill_user(getuid(), 1) : tree_kill(getpid(), NULL, 0)) == 0;
}

static bool reap(pid_t first, int *first_status)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
        if (pid > 0 && pid == first && first_status)
            *first_status = status;
    return pid < 0 && errno == ECHILD;
}

/* That no child is left says nothing: orphans are somebody else's. */
void ending_wait(const struct init *conf, int signals, pid_t first, int *first_status)
{
    for (int pass = 0; pass < PASSES_MAX; pass++) {
        struct pollfd p = {.fd = signals, .events = POLLIN};
        bool gone = kill_all(conf);

        if (reap(first, first_status) && gone)
            return;
        if (poll(&p, 1, PASS_MS) > 0)
            signals_take(signals);
    }
}
