/* SPDX-License-Identifier: MIT */
/* Forks the dialler once and doors ahead of need, and tells both of policies. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/lock.h"
#include "egress/roles.h"
#include "wire/egress_words.h"

enum { AHEAD = 2, NICE = 5 };

struct master {
    int daemon, dialler;
    int ahead[AHEAD]; /* of doors that wait; -1: none */
    struct egress_order order;
};

/* ---- doors ---- */

/* It has of the master nothing but its own end of one socket. */
static void fork_door(struct master *m, size_t at)
{
    int pair[2];
    pid_t pid;

    if (fd_message_pair(pair) < 0)
        return;
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_NAME, "egress-door");
        (void)setpriority(PRIO_PROCESS, 0, NICE);
        fd_close_all(&m->daemon, 1);
        fd_close_all(&m->dialler, 1);
        fd_close_all(m->ahead, AHEAD);
        (void)close(pair[0]);
        door_run(pair[1]);
    }
    (void)close(pair[1]);
    if (pid > 0)
        m->ahead[at] = pair[0];
    else
        (void)close(pair[0]);
}

static void fork_ahead(struct master *m)
{
    for (size_t i = 0; i < AHEAD; i++)
        if (m->ahead[i] < 0)
            fork_door(m, i);
}

/* To one that waits; one that has died meanwhile is passed over. */
static int hand_out(struct master *m, const int fds[2])
{
    int r = -EAGAIN;

    for (size_t i = 0; i < AHEAD && r < 0; i++) {
        if (m->ahead[i] < 0)
            fork_door(m, i);
        if (m->ahead[i] < 0)
            continue;
        r = fd_send(m->ahead[i], &m->order, sizeof m->order, fds, 2);
        fd_close_all(&m->ahead[i], 1);
    }
    return r;
}

static void open_door(struct master *m, int channel)
{
    struct egress_order failed = {.verb = EGRESS_FAILED, .id = m->order.id};
    int pair[2] = {-1, -1}, r = fd_message_pair(pair);

    if (r == 0)
        r = fd_send(m->dialler, &m->order, sizeof m->order, &pair[0], 1);
    if (r == -EPIPE || r == -ECONNRESET)
        _exit(1); /* without a dialler: the guard starts both again */
    if (r == 0)
        r = hand_out(m, (const int[]){channel, pair[1]});
    fd_close_all(pair, 2);
    (void)close(channel);
    if (r < 0 && fd_send(m->daemon, &failed, sizeof failed, NULL, 0) < 0)
        _exit(0);
}

static void read_order(struct master *m)
{
    int fd = -1;
    size_t n = 1;
    ssize_t got = fd_recv(m->daemon, &m->order, sizeof m->order, &fd, &n);

    if (got == -EINTR || got == -EAGAIN)
        return;
    if (got != sizeof m->order)
        _exit(0); /* the daemon has ended */
    if (m->order.verb == EGRESS_OPEN && n == 1)
        open_door(m, fd);
    else if (m->order.verb != EGRESS_CHANGE || n != 0 ||
             fd_send(m->dialler, &m->order, sizeof m->order, NULL, 0) < 0)
        _exit(1);
    explicit_bzero(&m->order, sizeof m->order); /* the next door is a copy of us */
}

/* ---- life ---- */

static int fork_dialler(const char *hosts)
{
    int pair[2];
    pid_t pid;

    if (fd_message_pair(pair) < 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_NAME, "egress-dialler");
        (void)close(EGRESS_FD);
        (void)close(pair[0]);
        dialler_run(pair[1], hosts);
    }
    (void)close(pair[1]);
    return pid > 0 ? pair[0] : -1;
}

static void loop(struct master *m)
{
    struct pollfd p[] = {
        {.fd = m->daemon,  .events = POLLIN},
        {.fd = m->dialler, .events = 0     },
    };

    for (;;) {
        fork_ahead(m);
        if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
            _exit(1);
        if (p[1].revents & (POLLHUP | POLLERR))
            _exit(1);
        if (p[0].revents)
            read_order(m);
    }
}

void master_run(int daemon, const char *hosts)
{
    struct master *m = calloc(1, sizeof *m);
    struct err e = {.text = "no memory"};

    if (!m)
        _exit(1);
    (void)prctl(PR_SET_NAME, "egress-master");
    (void)signal(SIGCHLD, SIG_IGN); /* doors are not waited for */
    *m = (struct master){
        .daemon = daemon, .ahead = {-1, -1}
    };
    m->dialler = fork_dialler(hosts);
    m->order.verb = EGRESS_HELLO;
    if (m->dialler >= 0 && lock_calls(LOCK_MASTER, &e) == 0 &&
        fd_send(daemon, &m->order, sizeof m->order, NULL, 0) == 0)
        loop(m);
    (void)!write(STDERR_FILENO, e.text, strlen(e.text));
    _exit(1);
}
