/* SPDX-License-Identifier: MIT */
#include "launcher/devices.h"

#include <errno.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sys.h"
#include "walls/root.h"

static int set(int fs, const char *key, const char *value)
{
    return syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno : 0;
}

static int mount_detached(void)
{
    cleanup_close int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    int r = fs < 0 ? -errno : set(fs, "size", "64k"), tree;

    if (r == 0)
        r = set(fs, "nr_inodes", "32");
    if (r == 0)
        r = set(fs, "mode", "0755");
    if (r == 0 && syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        r = -errno;
    if (r < 0)
        return r;
    tree = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    return tree < 0 ? -errno : tree;
}

int devices_make(void)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    cleanup_close int tree = mount_detached();
    int r = tree < 0 ? tree : root_make_devices(tree);

    if (r == 0 && (mkdirat(tree, "pts", 0755) < 0 || mkdirat(tree, "shm", 0755) < 0 ||
                   sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0))
        r = -errno;
    return r < 0 ? r : take_fd(&tree);
}
