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
 * sleeps in poll().
 */
#include <errno.h>
#include <fcntl.h>
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

#include "base/clock.h"
#include "base/fd.h"
#include "launch/bwrap.h"
#include "launch/launcher.h"
#include "launch/plain.h"
#include "launch/plain_kinds.h"
#include "launch/room.h"
#include "launch/sys.h"

enum { DAEMON_FD = 3, RESTARTS_MAX = 8, RESTARTS_WITHIN_S = 60, ARGUMENTS = 10 };

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

/* Without namespaces the guard is the last reaper: whatever is left comes to it and ends. */
static int prepare_plain(struct launcher *l, struct err *e)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(e, -errno, "become a reaper");
    return rooms_make(l->slots.rooms, e);
}

static int start_once(struct launcher *l, int *ret_status, struct err *e)
{
    bool rooted = l->slots.kind->rooted;
    pid_t pid;

    if (!rooted && prepare_plain(l, e) < 0)
        return -1;
    pid = sys_clone3(rooted ? CLONE_NEWPID | CLONE_NEWNS : 0, NULL);

    if (pid < 0)
        return err_sys(e, -errno, "clone the launcher with a pid and a mount namespace");
    if (pid == 0)
        launcher_main(l);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    if (!rooted) {
        keeper_purge();
        room_remove(l->slots.rooms);
    }
    return 0;
}

static void refuse_to_start(struct launcher *l, const struct err *e)
{
    struct launch_msg hello = {.verb = LAUNCH_HELLO, .err = *e};

    (void)!fd_send(l->daemon, &hello, sizeof hello, NULL, 0);
}

static int guard(struct launcher *l)
{
    struct err e = {0};

    for (int restarts = 0; restarts < RESTARTS_MAX; restarts++) {
        uint64_t born_us = clock_us(); /* monotonic: a clock that is set does not matter */
        int status = 0;

        cgroups_open(&l->slots.cgroups, getppid());
        if (start_once(l, &status, &e) < 0) {
            cgroups_close(&l->slots.cgroups); /* first: who is refused may kill us */
            refuse_to_start(l, &e);
            break;
        }
        cgroups_close(&l->slots.cgroups);
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
            return EXIT_SUCCESS;
        if (clock_us() - born_us > RESTARTS_WITHIN_S * UINT64_C(1000000))
            restarts = 0;
    }
    return EXIT_FAILURE;
}

static void raise_files(void)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

static bool find_kind(const char *name, const struct keeper_kind **ret)
{
    static const struct {
        bool built; /* -Djails */
        const struct keeper_kind *kind;
    } kinds[] = {
        {SBX_JAIL_NATIVE,     &keeper_native  },
        {SBX_JAIL_BWRAP,      &keeper_bwrap   },
        {SBX_JAIL_SUBPROCESS, &keeper_plain   },
        {SBX_JAIL_SEATBELT,   &keeper_seatbelt},
    };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].built && strcmp(kinds[i].kind->name, name) == 0) {
            *ret = kinds[i].kind;
            return true;
        }
    return false;
}

/* Arguments come from the daemon alone: uid base, netns mode, directory of workspaces, directory of
 * our programs, directory of dependencies, directory of WebAssembly runtimes, name of the jail, the
 * user and the group that the daemon will have. */
static struct launcher *parse(int argc, char **argv)
{
    struct launcher *l = calloc(1, sizeof *l);

    if (!l || argc < ARGUMENTS || !find_kind(argv[7], &l->slots.kind))
        return free(l), NULL;
    l->daemon = DAEMON_FD;
    l->slots.mntns = -1;
    l->slots.uid_base = (uid_t)strtoul(argv[1], NULL, 10);
    l->slots.netns_fresh = strcmp(argv[2], "fresh") == 0;
    l->slots.rootless = geteuid() != 0;
    kept_init(&l->kept, argv[3], l->slots.uid_base + SLOTS_MAX * UIDS_PER_SLOT, l->slots.rootless);
    kept_init(&l->shelf, argv[5], 0, l->slots.rootless);
    l->slots.user = (uid_t)strtoul(argv[8], NULL, 10);
    l->slots.group = (gid_t)strtoul(argv[9], NULL, 10);
    if (!l->slots.kind->rooted) {
        kept_be_plain(&l->kept, l->slots.user, l->slots.group);
        l->shelf.plain = true;
    }
    zygotes_init(&l->slots.zygotes, argv[4], argv[6]);
    l->programs = open(argv[4], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 1; i < argc; i++) /* init inherits what /proc shows of us */
        memset(argv[i], 0, strlen(argv[i]));
    return l;
}

int main(int argc, char **argv)
{
    struct launcher *l = parse(argc, argv);
    struct err e = {0};

    if (!l || fcntl(DAEMON_FD, F_SETFD, FD_CLOEXEC) < 0) {
        (void)fprintf(stderr, "sandbox-launcher is started by sandbox-executor\n");
        return EXIT_FAILURE;
    }
    (void)prctl(PR_SET_NAME, "sandbox-guard");
    (void)signal(SIGINT, SIG_IGN); /* the terminal's; the daemon tells us by closing the socket */
    (void)signal(SIGTERM, SIG_IGN);
    (void)umask(022);
    raise_files();
    if (l->slots.rootless && l->slots.kind->rootless && enter_user_namespace(&e) < 0) {
        refuse_to_start(l, &e);
        return EXIT_FAILURE;
    }
    return guard(l);
}
