/* SPDX-License-Identifier: MIT */
#include "launch/fence.h"

#include <errno.h>
#include <sys/stat.h>

#include "core/plan.h"

/* Directories with every right may be somebody else's: /tmp and the like. */
static int set_modes(char *const *paths, const struct job_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (files[i].rights != PLAN_EVERYTHING && !(files[i].rights & PLAN_THERE) &&
            chmod(paths[i], files[i].mode & 0777) < 0)
            return -errno;
    return 0;
}

int fence_raise(char *const *paths, const struct job_file *files, size_t n)
{
    int r = set_modes(paths, files, n);

    return r == 0 ? fence_lock(paths, files, n) : r;
}
