/* SPDX-License-Identifier: MIT */
#include "launch/fence.h"

int fence_lock(char *const *paths, const struct job_file *files, size_t n)
{
    (void)paths, (void)files, (void)n; /* as on a kernel without Landlock */
    return 0;
}
