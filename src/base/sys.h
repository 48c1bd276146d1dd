/* SPDX-License-Identifier: MIT */
/* System calls that glibc 2.36 does not wrap, or wraps with side effects we cannot have. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/fd.h"

static inline pid_t sys_clone3(uint64_t flags, int *ret_pidfd)
{
    struct clone_args a = {.flags = flags, .exit_signal = 17 /* SIGCHLD */};

    if (ret_pidfd) {
        a.flags |= CLONE_PIDFD;
        a.pidfd = (uint64_t)(uintptr_t)ret_pidfd;
    }
    return (pid_t)syscall(SYS_clone3, &a, sizeof a);
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_open_tree(int dirfd, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int sys_move_mount(int from, const char *from_path, int to, const char *to_path,
                                 unsigned flags)
{
    return (int)syscall(SYS_move_mount, from, from_path, to, to_path, flags);
}

static inline int sys_mount_setattr(int dirfd, const char *path, unsigned flags,
                                    struct mount_attr *attr)
{
    return (int)syscall(SYS_mount_setattr, dirfd, path, flags, attr, sizeof *attr);
}

/* A directory as a detached mount, without devices and set-id programs. Or -errno. */
static inline int sys_clone_mount(int dir, uint64_t more)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | more};
    cleanup_close int tree =
        sys_open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

    if (tree < 0 || sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0)
        return -errno;
    return take_fd(&tree);
}

static inline int sys_pidfd_kill(int pidfd)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, 9 /* SIGKILL */, NULL, 0);
}

/* The launcher hears of its children by a descriptor, for which it blocks a signal that those it
 * starts need. */
static inline int sys_unblock_signals(void)
{
    sigset_t none;

    (void)sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* glibc's wrappers of these tell all threads; there is one, and it may be vforked. */
static inline int sys_setgroups_none(void)
{
    return (int)syscall(SYS_setgroups, 0, NULL);
}

static inline int sys_setresgid(gid_t g)
{
    return (int)syscall(SYS_setresgid, g, g, g);
}

static inline int sys_setresuid(uid_t u)
{
    return (int)syscall(SYS_setresuid, u, u, u);
}
