/* SPDX-License-Identifier: MIT */
/* sandbox-init is linked with musl, which is quicker to start and lacks this. */
#pragma once

#include <unistd.h>

#ifndef __GLIBC__
#include <sys/syscall.h>
static inline int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}
#endif
