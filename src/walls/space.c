/* SPDX-License-Identifier: MIT */
#include "walls/space.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"

#define STAGE "/srv" /* where the root is attached; any directory that is there */

enum { PATH_ROOM = 64 };

/* Root of the host is not counted; what is no longer root would be: processes, pinned pages.
 * Without the right to raise them, as in a container, limits stay as the operator has set
 * them. */
static void raise_limits(void)
{
    static const __rlimit_resource_t counted[] = {RLIMIT_NPROC, RLIMIT_MEMLOCK};

    for (size_t i = 0; i < ARRAY_LEN(counted); i++) {
        struct rlimit l = {RLIM_INFINITY, RLIM_INFINITY};

        if (setrlimit(counted[i], &l) == 0 || getrlimit(counted[i], &l) < 0)
            continue;
        l.rlim_cur = l.rlim_max;
        (void)setrlimit(counted[i], &l);
    }
}

static int write_map(pid_t pid, const char *file, const struct space *s)
{
    char path[PATH_ROOM], text[SPACE_MAP_MAX + PATH_ROOM];
    cleanup_close int fd = -1;
    int n = snprintf(text, sizeof text, "0 %u 1\n%s", (unsigned)s->uid, s->map);

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, (size_t)n) != n ? -errno : 0;
}

/* Still root of the host: maps its parent when that says that it has entered. */
__attribute__((noreturn)) static void mapper(int said, const struct space *s)
{
    char entered;

    _exit(fd_read_full(said, &entered, 1) != 1 || write_map(getppid(), "uid_map", s) < 0 ||
          write_map(getppid(), "gid_map", s) < 0);
}

/* A process that has left the user namespace of the host cannot write its own map. What the kernel
 * counts for users in a namespace (instances of inotify, pending signals) it also counts for the
 * effective user who made it: were that root, a sandbox could use up what root of the host may
 * have. */
static int enter_mapped(const struct space *s)
{
    cleanup_close int here = -1, there = -1;
    cleanup_reap pid_t pid = -1;
    int p[2], status, r = fd_pipe(p);

    if (r < 0)
        return r;
    there = p[0], here = p[1];
    pid = fork();
    if (pid == 0) {
        (void)close(take_fd(&here));
        mapper(there, s);
    }
    if (pid < 0 || prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0 ||
        seteuid(s->owner) < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS | s->more) < 0 ||
        write(here, "", 1) != 1)
        return -errno;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    (void)take_pid(&pid);
    return status == 0 ? 0 : -EPERM;
}

/* Changing ids makes the process's own files in /proc root's of the host; that is undone. */
static int become_root_of_it(void)
{
    return sys_setgroups_none() < 0 || sys_setresgid(0) < 0 || sys_setresuid(0) < 0 ||
                   prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0
               ? -errno
               : 0;
}

static int attach(int tree)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        sys_move_mount(tree, "", AT_FDCWD, STAGE, MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
        chdir(STAGE) < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return -errno;
    return 0;
}

int space_enter(int template, const struct space *s)
{
    cleanup_close int tree = -1;
    int r;

    raise_limits();
    if (setns(template, CLONE_NEWNS) < 0)
        return -errno;
    tree = sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0)
        return -errno;
    r = enter_mapped(s);
    if (r == 0)
        r = become_root_of_it();
    return r ? r : attach(tree);
}
