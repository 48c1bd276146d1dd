/* SPDX-License-Identifier: MIT */
/* sandbox-egress [FILE]: the way out of sandboxes (PROCESSES). Started by the daemon alone, with a
 * socket as descriptor 3. This process is the guard, which starts the master again. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/privilege.h"
#include "egress/roles.h"

enum { AGAIN_MS = 100, NS_PER_MS = 1000000 };

/* The last of its children is gone before another one begins. */
static int await(pid_t master)
{
    int status = 0;

    while (waitpid(master, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = AGAIN_MS * NS_PER_MS};
    const char *hosts = argc > 1 ? argv[1] : "";
    pid_t master;

    if (privilege_give_up() < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
        setrlimit(RLIMIT_CORE, &(struct rlimit){0}) < 0 || fd_close_from(EGRESS_FD + 1) < 0)
        return 1;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_NAME, "egress-guard");
    privilege_all_files();
    for (;;) {
        master = fork();
        if (master == 0)
            master_run(EGRESS_FD, hosts);
        if (master > 0 && await(master) == 0)
            return 0;
        (void)nanosleep(&pause, NULL);
    }
}
