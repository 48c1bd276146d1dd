/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/start.h"

enum { STATE_MAX = 256 };

int starter_open(struct starter *s)
{
    s->stack = NULL;
    return 0;
}

/* What the child leaves comes through a pipe; becoming a program closes it. */
pid_t starter_run(const struct starter *s, void (*fn)(void *state), void *state, size_t state_n)
{
    cleanup_close int from = -1, to = -1;
    char left[STATE_MAX];
    int pair[2], r;
    pid_t pid;

    (void)s;
    r = state_n <= sizeof left ? fd_pipe(pair) : -EINVAL;
    if (r < 0)
        return errno = -r, -1;
    from = pair[0], to = pair[1];
    pid = fork();
    if (pid == 0) {
        fn(state);
        (void)!fd_write_all(to, state, state_n);
        _exit(127);
    }
    if (pid < 0)
        return -1;
    (void)close(take_fd(&to));
    if (fd_read_full(from, left, state_n) == (ssize_t)state_n)
        memcpy(state, left, state_n);
    return pid;
}
