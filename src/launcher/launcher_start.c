/* SPDX-License-Identifier: MIT */
/* How the launcher comes to be what launcher.c is. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/traits.h"
#include "launcher/discard.h"
#include "launcher/guard.h"
#include "launcher/launcher_inner.h"
#include "launcher/lend.h"
#include "walls/apart.h"
#include "walls/root.h"

enum { BIRTHS_MIN = 2 }; /* made at a time; one for each processor, if there are more */

static unsigned traits(const struct launcher *l)
{
    unsigned t = l->slots.kind->traits;

    if (l->slots.cgroups.version && cgroups_has(&l->slots.cgroups, CG_MEMORY))
        t |= JAIL_MEMORY;
    if (l->slots.cgroups.version && cgroups_has(&l->slots.cgroups, CG_PIDS))
        t |= JAIL_PIDS;
    if (l->slots.cgroups.version && cgroups_has(&l->slots.cgroups, CG_CPU))
        t |= JAIL_CPU;
    if (l->slots.host.inodes)
        t |= JAIL_INODES;
    if (l->slots.host.inodes &&
        !l->slots.host.rootless) /* else the host's nodes are bound (root.c) */
        t |= JAIL_DEVICES;
    return t;
}

static unsigned templates(const struct launcher *l)
{
    unsigned t = 0;

    if (l->slots.kind != &keeper_native)
        return BIT(TEMPLATE_EXEC);
    for (unsigned i = 0; i < TEMPLATE_COUNT; i++)
        t |= zygotes_has(&l->slots.zygotes, (enum plan_template)i) ? BIT(i) : 0;
    return t;
}

/* Without a pid namespace the launcher is no pid 1, and orphans come to it as a subreaper. */
static int prepare_plain(struct launcher *l, struct err *e)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(e, -errno, "become a reaper");
    l->slots.program = openat(l->programs, "sandbox-init", O_RDONLY | O_CLOEXEC);
    if (l->slots.program < 0)
        return err_sys(e, -errno, "sandbox-init");
    closep(&l->programs);
    l->programs = -1;
    kept_enter(&l->kept);
    kept_enter(&l->shelf);
    return 0;
}

static int hear_of_children(struct launcher *l, struct err *e)
{
    sigset_t mask;

    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGCHLD);
    l->children = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->children < 0 || sigprocmask(SIG_SETMASK, &mask, NULL) < 0)
        return err_sys(e, -errno, "hear of children");
    return 0;
}

static int hear(struct launcher *l, struct err *e)
{
    struct epoll_event daemon = {.events = EPOLLIN, .data.u64 = LAUNCHER_DAEMON};
    struct epoll_event children = {.events = EPOLLIN, .data.u64 = LAUNCHER_CHILDREN};

    if (hear_of_children(l, e) < 0)
        return -1;
    l->slots.events = epoll_create1(EPOLL_CLOEXEC);
    if (l->slots.events < 0 || epoll_ctl(l->slots.events, EPOLL_CTL_ADD, l->daemon, &daemon) < 0 ||
        epoll_ctl(l->slots.events, EPOLL_CTL_ADD, l->children, &children) < 0)
        return err_sys(e, -errno, "hear of everything");
    return 0;
}

static int prepare(struct launcher *l, struct err *e)
{
    int inodes;

    if (hear(l, e) < 0)
        return -1;
    if (!l->slots.kind->rooted)
        return prepare_plain(l, e);
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_sys(e, -errno, "private mount namespace");
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, -errno, "own /proc");
    if (filters_build(&l->slots.filters, e) < 0)
        return -1;
    if (root_template(l->slots.host.rootless, l->programs, &l->slots.mntns, e) < 0)
        return -1;
    inodes = apart_probe(l->slots.mntns);
    if (inodes < 0)
        return err_sys(e, inodes, "probe for inodes of each slot's own");
    l->slots.host.inodes = inodes > 0;
    closep(&l->programs); /* no sandbox descends from a process that holds it */
    l->programs = -1;
    l->slots.zygotes.mntns = l->slots.mntns;
    kept_enter(&l->kept);
    kept_enter(&l->shelf);
    return 0;
}

static size_t cpus_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) < 0 ? 0 : CPU_COUNT(&set);

    return n > 0 ? (size_t)n : 1;
}

/* Pid 1 of the launcher's pid namespace. */
void launcher_main(struct launcher *l)
{
    struct launch_msg hello = {.verb = LAUNCH_HELLO};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, "sandbox-launch");
    (void)signal(SIGPIPE, SIG_IGN);
    l->slots.cpus_n = cpus_count();
    /* More at a time would only take the caches from each other: a third more work for each. */
    l->slots.births_max = l->slots.cpus_n > BIRTHS_MIN ? l->slots.cpus_n : BIRTHS_MIN;
    if (prepare(l, &hello.err) == 0) {
        hello.traits = traits(l);
        hello.templates = templates(l);
        lend_tell(&l->slots, &hello);
        if (l->slots.cgroups.version == 2 || cgroups_has(&l->slots.cgroups, CG_FREEZER))
            hello.flags |= l->slots.cgroups.version ? LAUNCH_FREEZES : 0;
        (void)snprintf(hello.workspace, sizeof hello.workspace, "%s",
                       l->slots.cgroups.version == 2   ? "cgroup2"
                       : l->slots.cgroups.version == 1 ? "cgroup1"
                                                       : l->slots.cgroups.why);
    }
    discard_leftovers(&l->measures, &l->kept);
    launcher_say(l, &hello, NULL, 0);
    if (hello.err.kind != ERR_NONE)
        exit(EXIT_SUCCESS); /* the daemon has the reason; trying again would not help */
    launcher_loop(l);
    exit(EXIT_FAILURE);
}
