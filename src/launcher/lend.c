/* SPDX-License-Identifier: MIT */
#include "launcher/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "core/plan_parts.h"
#include "launcher/lazy.h"
#include "launcher/slots.h"
#include "walls/keeper.h"
#include "walls/root.h"
#include "walls/top_dirs.h"

enum { PATH_ROOM = 64 };

/* A mount of another namespace cannot be cloned. So the kernel is asked where the descriptor is,
 * and what is there in our own namespace must be the same directory. */
static int lend_one(int dir)
{
    cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), own = -1;
    char name[PATH_ROOM], path[LAZY_TEXT_MAX];
    struct stat theirs, ours;
    ssize_t n;

    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", dir);
    n = readlink(name, path, sizeof path - 1);
    if (root < 0 || n < 2 || path[0] != '/')
        return -ENOENT;
    path[n] = '\0';
    own = fd_open_beneath(root, path + 1, O_PATH | O_DIRECTORY, 0, FD_LINKS_NEVER);
    if (own < 0)
        return own;
    if (fstat(dir, &theirs) < 0 || fstat(own, &ours) < 0)
        return -errno;
    if (theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino)
        return -ESTALE;
    return sys_clone_mount(own, MOUNT_ATTR_RDONLY);
}

static int lend_all(const int *dirs, size_t n, int *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = lend_one(dirs[i]);
        if (ret[i] < 0)
            return ret[i];
    }
    return 0;
}

/* A workspace as keepers make them, in a mount namespace of our own, and what is lent in it. */
static int make(const struct slots *all, const struct launch_msg *m, const struct lazy *z,
                int *ret_tree)
{
    const struct root_private p = {
        .uid = m->uid, .workspace_max = m->workspace_max, .workspace_files = m->workspace_files};
    cleanup_close int dir = -1;
    char names[LAUNCH_DIRS_MAX];
    int r;

    memcpy(names, m->dirs, sizeof names);
    names[sizeof names - 1] = '\0';
    if (setns(all->mntns, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
        return -errno;
    r = root_mount_workspace(&p);
    dir = r < 0 ? -1 : open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0)
        r = dir < 0 ? -errno : dirs_make(dir, names, m->uid);
    if (r == 0)
        r = lazy_mount(z, dir);
    if (r < 0)
        return r;
    *ret_tree =
        sys_open_tree(AT_FDCWD, "/workspace", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    return *ret_tree < 0 ? -errno : 0;
}

/* In a child: the host's directories may be slow, or hang. What is made is charged to the slot. */
__attribute__((noreturn)) static void lend(const struct slots *all, const struct slot *s,
                                           const struct launch_msg *m, const int *fds, int sock)
{
    int lower[LAUNCH_LAZY_MAX], tree = -1;
    const struct lazy z = {.list = fds[launch_fds(m) - 1],
                           .lower = lower,
                           .n = m->lazy_n,
                           .uid = m->uid,
                           .user = all->host.user,
                           .group = all->host.group};
    int r = sys_unblock_signals() < 0 ? -errno : cgroup_enter(s->cgroup.procs);

    if (r == 0)
        r = lend_all(fds + LAUNCH_FDS_PREPARE, m->lazy_n, lower);
    if (r == 0)
        r = make(all, m, &z, &tree);
    (void)!fd_send(sock, &r, sizeof r, &tree, tree >= 0 ? 1 : 0);
    _exit(0);
}

int lend_start(const struct slots *all, const struct slot *s, const struct launch_msg *m,
               const int *fds, struct err *e)
{
    cleanup_close int here = -1, there = -1;
    int sp[2], r = fd_message_pair(sp);
    pid_t pid;

    if (r < 0)
        return err_sys(e, r, "socket for what is lent");
    here = sp[0], there = sp[1];
    pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "fork who lends directories");
    if (pid == 0)
        lend(all, s, m, fds, there);
    return take_fd(&here);
}

/* NULL: they can be. */
static const char *refused(const struct slots *all)
{
    if (!all->kind->rooted)
        return "this jail mounts nothing";
    if (all->host.rootless)
        return "mounting host directories needs a service that was started as root";
    if (lazy_probe(all->mntns, all->host.user, all->host.group) < 0)
        return "this kernel cannot mount host directories for reading on demand";
    return NULL;
}

void lend_tell(const struct slots *all, struct launch_msg *hello)
{
    const char *why = refused(all);

    if (why)
        (void)snprintf(hello->dirs, sizeof hello->dirs, "%s", why);
    else
        hello->flags |= LAUNCH_LAZY;
}
