/* SPDX-License-Identifier: MIT */
#include "init/fs.h"

#include <linux/magic.h>
#include <sys/vfs.h>

bool fs_is_proc(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

bool fs_is_made_up(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC;
}

int64_t fs_used(const char *path)
{
    struct statfs s;

    return statfs(path, &s) < 0 ? 0 : (int64_t)(s.f_blocks - s.f_bfree) * (int64_t)s.f_bsize;
}
