/* SPDX-License-Identifier: MIT */
/*
 * sandbox-launcher: the only holder of privilege.
 *
 * Theory of operation
 *
 *   daemon ──fd 3, SEQPACKET──▶ launcher ──▶ keepers ──▶ sandboxes
 *                                  └──▶ zygotes ──▶ keepers ──▶ sandboxes
 *
 * Three processes of this program exist. The outer one (`guard`) enters a user
 * namespace when it is not root, makes control groups, and forks the launcher as
 * pid 1 of a pid namespace: when that dies, by any cause, the kernel kills every
 * sandbox. The guard then starts another one; if the launcher ended because the
 * daemon closed its socket, the guard removes the groups and ends as well. The
 * third is a short-lived child that builds the template root.
 *
 * The launcher reads fixed-size messages and descriptors, nothing else; it never
 * opens a path below a directory that a tenant can write. It has one thread and
 * sleeps in epoll_wait().
 */
#include "launcher/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/privilege.h"
#include "base/sys.h"
#include "init/room.h"
#include "init/steps.h"
#include "launcher/launcher.h"
#include "launcher/users.h"
#include "walls/bwrap.h"
#include "walls/plain.h"
#include "wire/launch.h"

_Static_assert(SLOTS_MAX *UIDS_PER_SLOT <= USERS_OF_SLOTS, "every slot has users of its own");

enum { ARGUMENTS = 11, RESTARTS_MAX = 8, RESTARTS_WITHIN_S = 60 };

/* ---- one life of a launcher ---- */

static int write_self(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Without root: become root of a user namespace that maps nobody but us. */
static int enter_user_namespace(struct err *e)
{
    char map[48];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    int r;

    if (unshare(CLONE_NEWUSER) < 0)
        return err_sys(e, -errno,
                       "user namespace (is kernel.unprivileged_userns_clone or an AppArmor "
                       "restriction in the way? see 'sbx doctor')");
    r = write_self("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)uid);
    if (r == 0)
        r = write_self("/proc/self/uid_map", map);
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)gid);
    if (r == 0)
        r = write_self("/proc/self/gid_map", map);
    return r < 0 ? err_sys(e, r, "map of the user namespace") : 0;
}

static int claim_users(struct launcher *l, struct err *e)
{
    const struct users all = {.first = l->slots.uid_base};
    bool there;
    unsigned range = kept_range(&l->kept, &all, &there);

    if (users_claim(&l->users, all.first, range, there, e) < 0)
        return -1;
    l->slots.uid_base = users_slots(&l->users);
    l->kept.users = &l->users;
    l->slots.zygotes.uid_first = users_zygotes(&l->users);
    kept_add_stranger(&l->kept);
    l->slots.zygotes.maps = l->users.used_n;
    return users_map(&l->users, l->slots.zygotes.map, sizeof l->slots.zygotes.map);
}

/* Once. */
static int begin(struct launcher *l, struct err *e)
{
    (void)prctl(PR_SET_NAME, "sandbox-guard");
    if (!l->slots.host.rootless && claim_users(l, e) < 0)
        return -1;
    return l->slots.host.rootless && l->slots.kind->rootless ? enter_user_namespace(e) : 0;
}

/* Without namespaces the guard is the last reaper: whatever is left comes to it and ends. */
static int prepare_plain(struct launcher *l, struct err *e)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(e, -errno, "become a reaper");
    return rooms_make(l->slots.rooms, e);
}

/* Before each start; leaves nothing behind when it fails. */
static int prepare(struct launcher *l, struct err *e)
{
    cgroups_open(&l->slots.cgroups, getppid());
    if (!l->slots.kind->rooted && prepare_plain(l, e) < 0) {
        cgroups_close(&l->slots.cgroups);
        return -1;
    }
    return 0;
}

/* As fork() does. */
static pid_t start(const struct launcher *l, struct err *e)
{
    pid_t pid = sys_clone3(l->slots.kind->rooted ? CLONE_NEWPID | CLONE_NEWNS : 0, NULL);

    return pid < 0 ? err_sys(e, -errno, "clone the launcher with a pid and a mount namespace")
                   : pid;
}

/* The kernel, or we as the reaper, ended whatever there was. */
static void clean_up(struct launcher *l)
{
    if (!l->slots.kind->rooted) {
        keeper_purge();
        room_remove(l->slots.rooms);
    }
    cgroups_close(&l->slots.cgroups);
}

/* ---- the guard ---- */

/* Nobody shall read what the daemon told us: init inherits what lists of processes show of us. */
static void hide_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        memset(argv[i], 0, strlen(argv[i]));
}

/* The launcher, zygotes, keepers and all that they start inherit it. A user whose own hard limit is
 * 0 cannot raise it, which matters only where a crash would start a program of root's. */
static int limit_cores(struct err *e)
{
    const struct rlimit l = {CORE_LIMIT, CORE_LIMIT};
    cleanup_close int fd = -1;
    char first = '\0';

    if (setrlimit(RLIMIT_CORE, &l) == 0)
        return 0;
    fd = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &first, 1) != 1 || first != '|')
        return 0;
    return err_set(e, ERR_HOST,
                   "the hard limit on core dumps is 0 and cannot be raised to 1, so a crash in a "
                   "sandbox would start the program in kernel.core_pattern as root; start with a "
                   "higher limit (ulimit -Hc)");
}

static int refuse_to_start(const struct err *e)
{
    struct launch_msg hello = {.verb = LAUNCH_HELLO, .err = *e};

    (void)!fd_send(GUARD_DAEMON_FD, &hello, sizeof hello, NULL, 0);
    return EXIT_FAILURE;
}

/*
 * Waits for the end of the launcher, which has the other end of the pipe, alone: keepers close what
 * is not theirs. That end closes when the launcher dies, but the launcher is not dead before all
 * that is below it; and what is frozen cannot die.
 */
static int await(const struct launcher *l, pid_t pid, int end)
{
    struct pollfd p = {.fd = end, .events = POLLIN};
    int status = 0;

    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        ;
    cgroups_thaw(&l->slots.cgroups);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* One life of a launcher. */
static int start_once(struct launcher *l, bool *ret_accident, struct err *e)
{
    cleanup_close int here = -1, there = -1;
    int status, ends[2], r;
    pid_t pid;

    if (prepare(l, e) < 0)
        return -1;
    r = fd_pipe(ends);
    if (r < 0) {
        clean_up(l);
        return err_sys(e, r, "pipe to the launcher");
    }
    here = ends[0], there = ends[1];
    pid = start(l, e);
    if (pid < 0) {
        clean_up(l); /* before somebody is refused, who may kill us */
        return -1;
    }
    if (pid == 0) {
        closep(&here);
        launcher_main(l);
    }
    closep(&there);
    status = await(l, pid, here);
    *ret_accident = !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS;
    clean_up(l);
    return 0;
}

static int start_again(struct launcher *l)
{
    struct err e = {0};

    for (int restarts = 0; restarts < RESTARTS_MAX; restarts++) {
        uint64_t born_us = clock_us(); /* monotonic: a clock that is set does not matter */
        bool accident = false;

        if (start_once(l, &accident, &e) < 0)
            return refuse_to_start(&e);
        if (!accident)
            return EXIT_SUCCESS;
        if (clock_us() - born_us > RESTARTS_WITHIN_S * UINT64_C(1000000))
            restarts = 0;
    }
    return EXIT_FAILURE;
}

/* Until there is nothing more to start; returns what main() does. NULL: we were not started by the
 * daemon. */
static int run(struct launcher *l)
{
    struct err e = {0};

    if (!l || fcntl(GUARD_DAEMON_FD, F_SETFD, FD_CLOEXEC) < 0) {
        (void)fprintf(stderr, "sandbox-launcher is started by sandbox-executor\n");
        return EXIT_FAILURE;
    }
    (void)signal(SIGINT, SIG_IGN); /* the terminal's; the daemon tells us by closing the socket */
    (void)signal(SIGTERM, SIG_IGN);
    (void)umask(022);
    privilege_all_files();
    return limit_cores(&e) < 0 || begin(l, &e) < 0 ? refuse_to_start(&e) : start_again(l);
}

/* ---- arguments ---- */

static bool find_kind(const char *name, const struct keeper_kind **ret)
{
    static const struct keeper_kind *const kinds[] = {&keeper_native, &keeper_bwrap, &keeper_plain};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0) {
            *ret = kinds[i];
            return true;
        }
    return false;
}

/* Arguments come from the daemon alone: uid base, netns mode, directory of workspaces, directory of
 * our programs, directory of dependencies, directory of WebAssembly runtimes, name of the jail, the
 * user and the group that the daemon will have, the directory that is a workspace itself. */
static struct launcher *parse(int argc, char **argv)
{
    struct launcher *l = calloc(1, sizeof *l);

    if (!l || argc < ARGUMENTS || !find_kind(argv[7], &l->slots.kind))
        return free(l), NULL;
    l->daemon = GUARD_DAEMON_FD;
    l->slots.mntns = l->slots.program = -1;
    l->slots.uid_base = (uid_t)strtoul(argv[1], NULL, 10);
    l->slots.host.netns_fresh = strcmp(argv[2], "fresh") == 0;
    l->slots.host.rootless = !privilege_is_host_root();
    l->slots.host.user = (uid_t)strtoul(argv[8], NULL, 10);
    l->slots.host.group = (gid_t)strtoul(argv[9], NULL, 10);
    kept_init(&l->kept, argv[3], argv[10], l->slots.host.user, l->slots.host.rootless);
    kept_init(&l->shelf, argv[5], "", l->slots.host.user, l->slots.host.rootless);
    if (!l->slots.kind->rooted) {
        kept_be_plain(&l->kept, l->slots.host.group);
        l->shelf.plain = true;
    }
    l->programs = open(argv[4], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    zygotes_init(&l->slots.zygotes, l->programs, argv[6]);
    hide_arguments(argc, argv);
    return l;
}

int main(int argc, char **argv)
{
    return run(parse(argc, argv));
}
