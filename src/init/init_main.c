/* SPDX-License-Identifier: MIT */
/*
 * sandbox-init: pid 1 of every sandbox, told by an order what to be (order.h). The walls stand
 * already and no privilege is left; what is missing is what bubblewrap does not do (limits) and
 * what does not survive becoming another program (a pid 1 that nobody can look into). Then it is
 * init (init.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/init.h"
#include "init/order.h"
#include "init/prestart.h"
#include "init/runner.h"
#include "init/steps.h"

static const struct confine_step steps[] = {
    {"resource limits",   step_limits           }, /* not behind all walls: they are set */
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
    struct init_host host = {.run = runner_exec};
    const struct init_host *ahead;
    struct init_order o;
    struct confine c = {.msg = &o.msg,
                        .fds = none,
                        .workspace = -1,
                        .dependencies = -1,
                        .lent = -1,
                        .host_net = -1,
                        .said = -1};

    if (fd_read_full(INIT_FD_ORDER, &o, sizeof o) != (ssize_t)sizeof o) {
        (void)fprintf(stderr, "sandbox-init is started by sandbox-launcher\n");
        return EXIT_FAILURE;
    }
    if (fd_close_from(INIT_FD_ORDER) < 0 || fd_cloexec_from(INIT_FD_CTL) < 0 ||
        (!o.walled && close_words() < 0))
        return EXIT_FAILURE;
    steps_run(steps + o.walled, ARRAY_LEN(steps) - o.walled, ARRAY_LEN(steps), &c);
    if (o.room[0])
        host.user = o.room;
    ahead = prestart_host((enum plan_template)o.msg.template);
    init_run(&(struct init){
        .host = ahead && !o.shared ? ahead : &host,
        .ctl = INIT_FD_CTL,
        .tree = o.tree ? INIT_FD_END : -1,
        .lazy = o.msg.lazy_n > 0,
        .persistent = (o.msg.flags & LAUNCH_PERSISTENT) != 0,
        .cpus = &o.cpus,
        .first = o.first,
        .gate = INIT_FD_GATE,
        .accounted = o.accounted,
        .shared = o.shared,
        .memory_max = o.msg.flags & LAUNCH_WATCH_MEMORY ? o.msg.memory_max : 0,
    });
}
