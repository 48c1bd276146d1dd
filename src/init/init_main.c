/* SPDX-License-Identifier: MIT */
/*
 * sandbox-init: pid 1 of a sandbox that bubblewrap made, or a zygote's keeper (order.h). The walls
 * stand already; what is left is what bubblewrap does not do (limits) and what does not survive
 * becoming another program (a pid 1 that nobody can look into), then the same init as everywhere
 * (init.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/init.h"
#include "init/order.h"
#include "init/runner.h"
#include "init/steps.h"

static const struct confine_step steps[] = {
    {"resource limits",   step_limits           }, /* a keeper's child has them */
    {"undumpable init",   step_undumpable       },
    {"no new privileges", step_no_new_privileges},
};

/* Its words were bwrap's until here. */
static int close_words(void)
{
    cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    return null < 0 || dup2(null, STDERR_FILENO) < 0 ? -1 : 0;
}

int main(void)
{
    static const int none[LAUNCH_FDS_PREPARE] = {INIT_FD_CTL};
    const struct init_host host = {.run = runner_exec};
    struct init_order o;
    bool born; /* in a keeper's memory (birth.h) */
    struct confine c = {.msg = &o.msg,
                        .fds = none,
                        .workspace = -1,
                        .dependencies = -1,
                        .host_net = -1,
                        .said = -1};

    if (fd_read_full(INIT_FD_ORDER, &o, sizeof o) != (ssize_t)sizeof o) {
        (void)fprintf(stderr, "sandbox-init is started by sandbox-launcher\n");
        return EXIT_FAILURE;
    }
    born = o.first > 0;
    if (fd_close_from(INIT_FD_ORDER) < 0 || fd_cloexec_from(INIT_FD_CTL) < 0 ||
        (!born && close_words() < 0))
        return EXIT_FAILURE;
    steps_run(steps + born, ARRAY_LEN(steps) - born, ARRAY_LEN(steps), &c);
    init_run(&(struct init){
        .host = &host,
        .ctl = INIT_FD_CTL,
        .tree = launch_has_tree(&o.msg) ? INIT_FD_END : -1,
        .lazy = o.msg.lazy_n > 0,
        .persistent = (o.msg.flags & LAUNCH_PERSISTENT) != 0,
        .relay = (o.msg.flags & LAUNCH_RELAY) != 0,
        .cpus = &o.cpus,
        .first = o.first,
        .gate = INIT_FD_GATE,
        .accounted = o.accounted,
        .memory_max = o.msg.flags & LAUNCH_WATCH_MEMORY ? o.msg.memory_max : 0,
    });
}
