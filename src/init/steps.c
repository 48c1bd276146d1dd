/* SPDX-License-Identifier: MIT */
#include "init/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/order.h"
#include "init/own_process.h"

enum { OOM_SCORE = 500 }; /* inside dies before outside */
enum {
    DUP_BASE = 64, /* above every number we assign */
    STACK_MAX = 8 << 20,
    LOCKED_MAX = 64 << 10,
    FAILURE_MAX = 128,
};

/* Numbers first, because later steps open and close things. Two moves: a source may sit on
 * another's target. Standard streams become /dev/null until a program gets its own. */
int step_descriptors(const struct confine *c)
{
    const int trees[INIT_FD_LAST - INIT_FD_END] = {c->workspace, c->dependencies, c->lent};
    int moved[LAUNCH_FDS_PREPARE], mounts[ARRAY_LEN(trees)], null;
    int said = c->said < 0 ? -1 : fcntl(c->said, F_DUPFD_CLOEXEC, DUP_BASE);

    for (size_t i = 0; i < LAUNCH_FDS_PREPARE; i++)
        moved[i] = fcntl(c->fds[i], F_DUPFD_CLOEXEC, DUP_BASE);
    for (size_t i = 0; i < ARRAY_LEN(trees); i++)
        mounts[i] = trees[i] < 0 ? -1 : fcntl(trees[i], F_DUPFD_CLOEXEC, DUP_BASE);
    null = c->kept ? INIT_FD_NULL : open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -errno;
    for (int i = 0; i < 3; i++)
        if (dup2(i == STDERR_FILENO && said >= 0 ? said : null, i) < 0)
            return -errno;
    for (int i = 0; i < LAUNCH_FDS_PREPARE; i++)
        if (moved[i] < 0 || fd_move(moved[i], INIT_FD_CTL + i) < 0)
            return -errno;
    if (fd_close_range(INIT_FD_END, INIT_FD_LAST - 1) < 0)
        return -errno;
    for (int i = 0; i < (int)ARRAY_LEN(trees); i++)
        if (trees[i] >= 0 && (mounts[i] < 0 || fd_move(mounts[i], INIT_FD_END + i) < 0))
            return -errno;
    return fd_close_from(c->kept ? INIT_FD_NULL : INIT_FD_LAST);
}

int steps_place(int *fd, int number)
{
    if (*fd == number)
        return fcntl(take_fd(fd), F_SETFD, 0) < 0 ? -errno : 0;
    return dup2(*fd, number) < 0 ? -errno : 0;
}

int limits_set(const struct confine *c, bool processes)
{
    /* Counted in the new user namespace, where init is one. A control group counts better and is
     * to be met first, because it also tells that it refused. */
    const rlim_t slack = c->msg->flags & LAUNCH_WATCH_MEMORY ? 0 : 16;
    const struct {
        int what;
        rlim_t limit;
    } rows[] = {
        {RLIMIT_CORE,    CORE_LIMIT                  },
        {RLIMIT_MEMLOCK, LOCKED_MAX                  },
        {RLIMIT_STACK,   STACK_MAX                   },
        {RLIMIT_NPROC,   c->msg->pids_max + 1 + slack},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows) - !processes; i++) {
        int r = process_limit(rows[i].what, rows[i].limit);

        if (r < 0)
            return r;
    }
    return process_limits();
}

int step_limits(const struct confine *c)
{
    return limits_set(c, true);
}

/* Init shares its user with the tenant: it must not be readable or traceable. */
int step_undumpable(const struct confine *c)
{
    (void)c;
    return process_visible(false);
}

int step_no_new_privileges(const struct confine *c)
{
    (void)c;
    return process_lock();
}

int steps_tell(int ctl, const char *what, int r)
{
    char bytes[sizeof(struct init_msg) + FAILURE_MAX];
    struct init_msg m = {.verb = INIT_FAILED, .arg = -r};

    m.name_n = (uint32_t)snprintf(bytes + sizeof m, FAILURE_MAX, "%s: %s", what, strerror(-r));
    memcpy(bytes, &m, sizeof m);
    return fd_send(ctl, bytes, sizeof m + m.name_n, NULL, 0);
}

void steps_fail(int ctl, const char *what, int r)
{
    (void)!steps_tell(ctl, what, r);
    _exit(1);
}

void steps_run(const struct confine_step *steps, size_t n, size_t moved, const struct confine *c)
{
    /* Half-way through the descriptors neither its old nor its new number is the control socket;
     * the step itself closes this one. */
    int ctl = moved < n ? fcntl(c->fds[0], F_DUPFD_CLOEXEC, DUP_BASE) : c->fds[0];

    if (ctl < 0)
        steps_fail(c->fds[0], "control socket", -errno);
    for (size_t i = 0; i < n; i++) {
        int r = steps[i].run(c);

        if (r < 0)
            steps_fail(i > moved ? INIT_FD_CTL : ctl, steps[i].name, r);
    }
}

int step_oom_score(const struct confine *c)
{
    cleanup_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    char text[8];
    int n = snprintf(text, sizeof text, "%d", OOM_SCORE);

    (void)c;
    return fd < 0 || write(fd, text, (size_t)n) < 0 ? -errno : 0;
}
