/* SPDX-License-Identifier: MIT */
#include "walls/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "core/traits.h"
#include "init/order.h"
#include "init/own_process.h"
#include "init/process_tree.h"
#include "walls/apart.h"
#include "walls/birth.h"
#include "walls/confine.h"

enum {
    DUP_BASE = 64, /* above every number we assign */
    PURGE_MS = 2,  /* between two passes over processes that do not want to go */
};

/* Who cannot tell ends: the launcher sees that, too, and takes the slot for lost. */
static int reply(const struct keeper *k, uint32_t verb, struct launch_msg *m, int fd)
{
    m->verb = verb;
    return fd_send(k->sock, m, sizeof *m, &fd, fd >= 0 ? 1 : 0);
}

/* ---- the native kind ---- */

static int enter_network(struct keeper *k, struct err *e)
{
    int r = netns_new(&k->net);

    return r < 0 ? err_sys(e, r, "network namespace") : 0;
}

static int enter_filters(const struct keeper *k, struct err *e)
{
    int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;

    if (r == 0)
        r = filter_install_ceiling();
    if (r == 0)
        r = filter_install(&k->filters->base);
    return r < 0 ? err_sys(e, r, "base system call filter") : 0;
}

/* Every sandbox gets a copy of the names, and its init stays in the session: a new one of each
 * would be taken down again with it. */
static int enter_names(struct err *e)
{
    (void)umask(022);
    if (setsid() < 0)
        return err_sys(e, -errno, "session");
    if (unshare(CLONE_NEWUTS) < 0 || sethostname("sandbox", 7) < 0 || setdomainname("", 0) < 0)
        return err_sys(e, -errno, "host name");
    return 0;
}

static int native_enter(struct keeper *k, struct err *e)
{
    int r = birth_keep(k);

    if (r < 0)
        return err_sys(e, r, "what sandboxes are born with");
    k->host_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (enter_network(k, e) < 0 || enter_names(e) < 0)
        return -1;
    return enter_filters(k, e);
}

struct confine keeper_confine(const struct keeper *k, const struct launch_msg *m, const int *fds,
                              size_t fds_n)
{
    size_t at = LAUNCH_FDS_PREPARE; /* those of the trees that are named, in this order */
    struct confine c = {
        .rootless = k->host.rootless,
        .uid = k->host.rootless ? 0 : m->uid,
        .msg = m,
        .fds = fds,
        .workspace = -1,
        .dependencies = -1,
        .lent = m->lazy_n > 0 ? fds[fds_n - 1] : -1, /* behind everything else */
        .host_net = -1,
        .said = -1,
    };

    if (m->workspace[0] && at < fds_n)
        c.workspace = fds[at++];
    if (m->dependencies[0] && at < fds_n)
        c.dependencies = fds[at];
    return c;
}

__attribute__((noreturn)) static void native_become(struct keeper *k, const struct launch_msg *m,
                                                    const int *fds, size_t fds_n)
{
    struct confine c = keeper_confine(k, m, fds, fds_n);

    c.host_net = m->flags & LAUNCH_HOST_NET ? k->host_net : -1;
    c.filter = &k->filters->last;
    c.kept = true;
    confine_self(&c); /* reports and exits on failure */
    birth_end(k, &(struct init_order){
                     .msg = *m,
                     .accounted = !(m->flags & LAUNCH_WATCH_MEMORY),
                     .tree = launch_has_tree(m),
                 });
}

/* The sandbox is dead. Is the slot's network namespace as it was? Without one it must not go on. */
static int native_renew(struct keeper *k, struct launch_msg *m, int status)
{
    struct err e;

    (void)m, (void)status;
    if (!k->host.netns_fresh && netns_untouched(&k->net))
        return 0;
    return enter_network(k, &e);
}

const struct keeper_kind keeper_native = {
    .name = "native",
    .traits = JAIL_FS | JAIL_PID | JAIL_IPC | JAIL_UTS | JAIL_NET | JAIL_USER | JAIL_NNP |
              JAIL_NOCAPS | JAIL_SECCOMP,
    .namespaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
    .rootless = true,
    .rooted = true,
    .enter = native_enter,
    .become = native_become,
    .renew = native_renew,
};

/* ---- all kinds ---- */

/* The order: groups first, so that all later memory is charged there; the filter last. */
static int enter(struct keeper *k, struct err *e)
{
    int r = cgroup_enter(k->procs);

    if (r < 0)
        return err_sys(e, r, "enter the control groups of slot %u", k->slot);
    fd_close_all(k->procs, CG_CONTROLLER_COUNT);
    if (k->space.map)
        r = space_enter(k->mntns, &k->space);
    else if (k->mntns >= 0 && setns(k->mntns, CLONE_NEWNS) < 0)
        r = -errno;
    if (r < 0 || (k->mntns >= 0 && chdir("/") < 0))
        return err_sys(e, r < 0 ? r : -errno, "enter the template root");
    fd_close_all(&k->mntns, 1);
    r = k->kind->rooted ? apart_enter(k->host.inodes, k->devices) : 0;
    if (r < 0)
        return err_sys(e, r, "inodes of slot %u", k->slot);
    fd_close_all(&k->devices, 1);
    if (k->copies)
        k->copies->settle(k->copies->user);
    return k->kind->enter(k, e);
}

/* What a pass misses by forking is found by the next; each death wakes the keeper. */
void keeper_purge(void)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);

        if (pid < 0 && errno == ECHILD)
            return;
        if (pid == 0 && tree_kill(getpid(), NULL, 0) > 0)
            (void)poll(NULL, 0, PURGE_MS);
        else if (pid == 0)
            (void)waitpid(-1, NULL, 0);
    }
}

/*
 * A keeper stays on one processor. Copying its memory for a new sandbox flushes
 * its translations everywhere it has run, and waking an idle processor for that
 * takes longer than all the rest (2 ms in a virtual machine). The processes of a
 * sandbox get all processors back. So does an init whose word everybody waits for:
 * that would take a second processor out of its sleep. One whose first process can
 * speak for itself does not need them.
 */
static void stay(struct keeper *k)
{
    int n = sysconf(_SC_NPROCESSORS_CONF) > 0 ? (int)sysconf(_SC_NPROCESSORS_CONF) : 1;
    int nth = 0;
    cpu_set_t one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof k->cpus.set, &k->cpus.set) < 0 || CPU_COUNT(&k->cpus.set) == 0)
        return;
    for (int cpu = 0; cpu < n && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &k->cpus.set) &&
            nth++ == (int)keeper_cpu(k->slot, (size_t)CPU_COUNT(&k->cpus.set)))
            CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

/* Where the kernel kills nobody when the launcher dies, the keeper does: it stops waiting. */
static void await(struct keeper *k, int pidfd)
{
    struct pollfd p[2] = {
        {.fd = pidfd,   .events = POLLIN},
        {.fd = k->sock, .events = 0     },
    };

    if (k->kind->rooted)
        return;
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
    if (p[1].revents)
        (void)sys_pidfd_kill(pidfd);
}

static void make_sandbox(struct keeper *k, struct launch_msg *m, int *fds, size_t fds_n)
{
    cleanup_close int pidfd = -1;
    int status = 0;
    pid_t pid;

    k->made++;
    pid = birth_clone(k, m, fds, fds_n, &pidfd);
    fd_close_all(fds, fds_n);
    if (pid < 0) {
        (void)err_sys(&m->err, -errno, "clone a sandbox");
        if (reply(k, LAUNCH_FAILED, m, -1) < 0)
            _exit(1);
        return;
    }
    if (reply(k, LAUNCH_STARTED, m, pidfd) < 0)
        (void)sys_pidfd_kill(pidfd); /* nobody could kill it later */
    await(k, pidfd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (k->kind->renew(k, m, status) < 0) {
        if (m->err.kind != ERR_NONE)
            (void)!reply(k, LAUNCH_FAILED, m, -1);
        _exit(1);
    }
    m->status = status;
    if (reply(k, LAUNCH_DEAD, m, -1) < 0)
        _exit(1);
}

/* Closes whatever else was inherited. Two moves, because a source may sit on another's target. One
 * that is lost on the way would be a group that is not entered. */
static int keep_only(struct keeper *k)
{
    int *mine[4 + CG_CONTROLLER_COUNT] = {&k->sock, &k->mntns, &k->program, &k->devices};
    int at = 3;

    for (size_t i = 0; i < CG_CONTROLLER_COUNT; i++)
        mine[4 + i] = &k->procs[i];
    for (size_t i = 0; i < ARRAY_LEN(mine); i++)
        if (*mine[i] >= 0) {
            int moved = fcntl(*mine[i], F_DUPFD_CLOEXEC, DUP_BASE);

            if (moved < 0)
                return -errno;
            *mine[i] = moved;
        }
    for (size_t i = 0; i < ARRAY_LEN(mine); i++)
        if (*mine[i] >= 0) {
            if (dup3(*mine[i], at, O_CLOEXEC) < 0)
                return -errno;
            *mine[i] = at++;
        }
    return close_range((unsigned)at, ~0u, 0) < 0 ? -errno : 0;
}

/* The five, a detached mount for each directory that is named, and whence what is lent comes. */
static size_t fds_wanted(const struct launch_msg *m)
{
    return LAUNCH_FDS_PREPARE + (m->workspace[0] != '\0') + (m->dependencies[0] != '\0') +
           (m->lazy_n > 0);
}

void keeper_run(struct keeper *k)
{
    struct launch_msg m = {.slot = k->slot};
    int r;

    (void)prctl(PR_SET_NAME, "sandbox-keeper");
    r = keep_only(k);
    if (r < 0)
        (void)err_sys(&m.err, r, "descriptors of slot %u", k->slot);
    k->host_net = k->said[0] = k->said[1] = -1;
    netns_init(&k->net);
    k->made = 0;
    k->pid = getpid();
    k->launcher = getppid();
    stay(k);
    if (r < 0 || enter(k, &m.err) < 0) {
        (void)!reply(k, LAUNCH_FAILED, &m, -1);
        _exit(1);
    }
    for (;;) {
        int fds[LAUNCH_FDS_KEEPER];
        size_t n = ARRAY_LEN(fds);
        ssize_t got = fd_recv(k->sock, &m, sizeof m, fds, &n);

        if (got != sizeof m || m.lazy_n > LAUNCH_LAZY_MAX || n != fds_wanted(&m)) {
            /* The last one does, should the guard be gone as well; not one that is only retired. */
            if (!k->kind->rooted && getppid() != k->launcher)
                (void)rmdir(k->rooms);
            _exit(got != 0);
        }
        make_sandbox(k, &m, fds, n);
    }
}
