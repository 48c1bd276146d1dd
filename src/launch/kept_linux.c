/* SPDX-License-Identifier: MIT */
#include "launch/kept.h"
#include "launch/sys.h"

int kept_mount(int dir, bool read_only)
{
    return sys_clone_mount(dir, read_only ? MOUNT_ATTR_RDONLY : 0);
}
