/* SPDX-License-Identifier: MIT */
#include "wire/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fd.h"
#include "wire/spawn.h"

enum {
    HELLO_MS = 60000, /* one that dies is noticed at once; this is for one that hangs */
    END_MS = 5000,
};

static int await_hello(int sock, struct launch_msg *ret, struct err *e)
{
    struct pollfd p = {.fd = sock, .events = POLLIN};
    int r = poll(&p, 1, HELLO_MS);

    if (r == 0)
        return err_set(e, ERR_HOST, "the launcher did not answer within %d s", HELLO_MS / 1000);
    r = fd_recv_exact(sock, ret, sizeof *ret, NULL, 0);
    if (r <= 0 || ret->verb != LAUNCH_HELLO)
        return err_set(e, ERR_HOST, "the launcher did not start");
    if (ret->err.kind != ERR_NONE) {
        *e = ret->err;
        e->text[sizeof e->text - 1] = '\0';
        return err_wrap(e, "launcher");
    }
    return 0;
}

/* It removes its control groups once its socket has ended; only then is it killed. */
static void let_end(pid_t guard, int *sock)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    siginfo_t end = {0};

    fd_close_all(sock, 1);
    for (int waited = 0; waited < END_MS && end.si_pid == 0; waited += 10) {
        if (waitid(P_PID, (id_t)guard, &end, WEXITED | WNOHANG | WNOWAIT) < 0)
            return;
        if (end.si_pid == 0)
            (void)nanosleep(&pause, NULL);
    }
}

int launch_start(const struct launch_conf *c, int *ret_sock, pid_t *ret_pid,
                 struct launch_msg *ret_hello, struct err *e)
{
    char uid[16], user[16], group[16];
    char *const argv[] = {
        (char *)"sandbox-launcher",
        uid,
        (char *)c->netns,
        (char *)c->workspaces,
        (char *)c->directory,
        (char *)c->dependencies,
        (char *)c->wasm,
        (char *)c->jail,
        user,
        group,
        (char *)c->own,
        NULL,
    };
    cleanup_close int here = -1;
    cleanup_reap pid_t pid = -1;
    int r;

    (void)snprintf(uid, sizeof uid, "%u", (unsigned)c->uid_base);
    (void)snprintf(user, sizeof user, "%u", (unsigned)c->user);
    (void)snprintf(group, sizeof group, "%u", (unsigned)c->group);
    if (program_start(c->directory, "sandbox-launcher", argv, &here, &pid, e) < 0)
        return -1;
    if (await_hello(here, ret_hello, e) < 0) {
        let_end(pid, &here);
        return -1;
    }
    r = fd_nonblock(here, true);
    if (r < 0)
        return err_sys(e, r, "launcher socket");
    *ret_sock = take_fd(&here);
    *ret_pid = take_pid(&pid);
    return 0;
}

int launch_receive(int sock, struct launch_msg *ret, int fds[LAUNCH_FDS_STARTED], size_t *ret_n)
{
    size_t n = LAUNCH_FDS_STARTED;
    ssize_t got = fd_recv(sock, ret, sizeof *ret, fds, &n);

    *ret_n = n;
    if (got == (ssize_t)sizeof *ret) {
        ret->err.text[sizeof ret->err.text - 1] = '\0';
        return 1;
    }
    fd_close_all(fds, n);
    *ret_n = 0;
    return got == 0 ? -EPIPE : got > 0 ? -EPROTO : (int)got;
}
