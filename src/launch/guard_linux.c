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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launch/bwrap.h"
#include "launch/guard.h"
#include "launch/launcher.h"
#include "launch/plain.h"
#include "launch/plain_kinds.h"
#include "launch/room.h"
#include "launch/sys.h"

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

static int begin(struct launcher *l, struct err *e)
{
    (void)prctl(PR_SET_NAME, "sandbox-guard");
    return l->slots.rootless && l->slots.kind->rootless ? enter_user_namespace(e) : 0;
}

/* Without namespaces the guard is the last reaper: whatever is left comes to it and ends. */
static int prepare_plain(struct launcher *l, struct err *e)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(e, -errno, "become a reaper");
    return rooms_make(l->slots.rooms, e);
}

static int prepare(struct launcher *l, struct err *e)
{
    cgroups_open(&l->slots.cgroups, getppid());
    if (!l->slots.kind->rooted && prepare_plain(l, e) < 0) {
        cgroups_close(&l->slots.cgroups);
        return -1;
    }
    return 0;
}

static pid_t start(const struct launcher *l, struct err *e)
{
    pid_t pid = sys_clone3(l->slots.kind->rooted ? CLONE_NEWPID | CLONE_NEWNS : 0, NULL);

    return pid < 0 ? err_sys(e, -errno, "clone the launcher with a pid and a mount namespace")
                   : pid;
}

static void clean_up(struct launcher *l, bool accident)
{
    (void)accident; /* the kernel, or we as the reaper, ended whatever there was */
    if (!l->slots.kind->rooted) {
        keeper_purge();
        room_remove(l->slots.rooms);
    }
    cgroups_close(&l->slots.cgroups);
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

    if (!l || argc < GUARD_ARGUMENTS || !find_kind(argv[7], &l->slots.kind))
        return free(l), NULL;
    l->daemon = GUARD_DAEMON_FD;
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
    guard_hide_arguments(argc, argv);
    return l;
}

int main(int argc, char **argv)
{
    static const struct guard guard = {begin, prepare, start, clean_up};

    return guard_run(&guard, parse(argc, argv));
}
