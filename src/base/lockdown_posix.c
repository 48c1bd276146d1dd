/* SPDX-License-Identifier: MIT */
#include "base/lockdown.h"

/* Neither wall is there, and whoever asked is told so. */
int lockdown(const char *const *writable, size_t n, unsigned *ret_walls, struct err *e)
{
    (void)writable, (void)n, (void)e;
    *ret_walls = 0;
    return 0;
}
