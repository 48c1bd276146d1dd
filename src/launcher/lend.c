/* SPDX-License-Identifier: MIT */
#include "launcher/lend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "core/plan.h"
#include "launcher/slots.h"
#include "walls/keeper.h"
#include "walls/lazy.h"

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

int lend_all(const int *dirs, size_t n, int *ret, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = lend_one(dirs[i]);
        if (ret[i] < 0) {
            int r = ret[i];

            fd_close_all(ret, i);
            return err_sys(e, r, "lend a host directory");
        }
    }
    return 0;
}

/* NULL: they can be. */
static const char *refused(const struct slots *all)
{
    if (!all->kind->rooted)
        return "this jail mounts nothing";
    if (all->rootless)
        return "mounting host directories needs a service that was started as root";
    if (lazy_probe(all->mntns, all->user, all->group) < 0)
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
