/* SPDX-License-Identifier: MIT */
/* Steps into the sandboxes of Linux alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/order.h"

enum { OOM_SCORE = 500 }; /* inside dies before outside */

int step_program(const struct confine *c)
{
    cleanup_close int fd = open(INIT_PROGRAM, O_RDONLY | O_CLOEXEC);

    (void)c;
    if (fd < 0)
        return -errno;
    return steps_place(&fd, INIT_FD_PROGRAM);
}

int step_oom_score(const struct confine *c)
{
    cleanup_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    char text[8];
    int n = snprintf(text, sizeof text, "%d", OOM_SCORE);

    (void)c;
    return fd < 0 || write(fd, text, (size_t)n) < 0 ? -errno : 0;
}
