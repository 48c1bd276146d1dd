/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "launch/kept.h"

int kept_mount(int dir, bool read_only)
{
    (void)dir, (void)read_only; /* nothing is mounted here: `plain` */
    return -ENOSYS;
}
