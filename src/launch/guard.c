/* SPDX-License-Identifier: MIT */
#include "launch/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "launch/wire.h"

enum { RESTARTS_MAX = 8, RESTARTS_WITHIN_S = 60 };

void guard_hide_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        memset(argv[i], 0, strlen(argv[i]));
}

static void raise_files(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

static int refuse_to_start(const struct err *e)
{
    struct launch_msg hello = {.verb = LAUNCH_HELLO, .err = *e};

    (void)!fd_send(GUARD_DAEMON_FD, &hello, sizeof hello, NULL, 0);
    return EXIT_FAILURE;
}

/* One life of a launcher. */
static int start_once(const struct guard *g, struct launcher *l, bool *ret_accident, struct err *e)
{
    int status = 0;
    pid_t pid;

    if (g->prepare(l, e) < 0)
        return -1;
    pid = g->start(l, e);
    if (pid < 0) {
        g->clean_up(l, false); /* before somebody is refused, who may kill us */
        return -1;
    }
    if (pid == 0)
        launcher_main(l);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *ret_accident = !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS;
    g->clean_up(l, *ret_accident);
    return 0;
}

static int start_again(const struct guard *g, struct launcher *l)
{
    struct err e = {0};

    for (int restarts = 0; restarts < RESTARTS_MAX; restarts++) {
        uint64_t born_us = clock_us(); /* monotonic: a clock that is set does not matter */
        bool accident;

        if (start_once(g, l, &accident, &e) < 0)
            return refuse_to_start(&e);
        if (!accident)
            return EXIT_SUCCESS;
        if (clock_us() - born_us > RESTARTS_WITHIN_S * UINT64_C(1000000))
            restarts = 0;
    }
    return EXIT_FAILURE;
}

int guard_run(const struct guard *g, struct launcher *l)
{
    struct err e = {0};

    if (!l || fcntl(GUARD_DAEMON_FD, F_SETFD, FD_CLOEXEC) < 0) {
        (void)fprintf(stderr, "sandbox-launcher is started by sandbox-executor\n");
        return EXIT_FAILURE;
    }
    (void)signal(SIGINT, SIG_IGN); /* the terminal's; the daemon tells us by closing the socket */
    (void)signal(SIGTERM, SIG_IGN);
    (void)umask(022);
    raise_files();
    return g->begin(l, &e) < 0 ? refuse_to_start(&e) : start_again(g, l);
}
