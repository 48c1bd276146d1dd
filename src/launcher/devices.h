/* SPDX-License-Identifier: MIT */
/*
 * /dev of a slot. A keeper that is not root of the host can make no device, and an overlay
 * that it mounts shows none that work (apart.h). So the launcher makes a small file system
 * with them, of that slot alone, and hands it over as a detached mount. Nobody else has its
 * inodes.
 */
#pragma once

/* A descriptor, or -errno. KERNEL 5.2 */
int devices_make(void);
