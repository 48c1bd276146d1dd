/* SPDX-License-Identifier: MIT */
/* How a warmed interpreter leaves: there are none elsewhere. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/runner.h"

/* The kernel tells their number as links of the directory that lists them. */
static int threads_count(void)
{
    struct stat st;

    return stat("/proc/self/task", &st) == 0 && st.st_nlink > 2 ? (int)st.st_nlink - 2 : 1;
}

void runner_leave(int status)
{
    const union sigval done = {.sival_int = threads_count() << 8 | (status & 255)};
    struct rusage u;

    /* Bytes that went to a disk are told by whoever reaps the process. */
    if (getppid() == 1 && getrusage(RUSAGE_SELF, &u) == 0 && !u.ru_inblock && !u.ru_oublock)
        (void)sigqueue(1, INIT_SIGNAL_DONE, done);
    _exit(status & 255);
}
