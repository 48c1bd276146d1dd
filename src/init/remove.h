/* SPDX-License-Identifier: MIT */
/*
 * Removing a tree of any depth.
 *
 * One directory is open at a time, whatever the depth. The way back up is "..",
 * checked against what was entered: a tenant that moves directories under our
 * feet gets an error, not another tree removed.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

/* Links are removed, not followed; what is not there is no error. 0, or -errno and the path it
 * failed at (malloc, maybe NULL). Stops at the first failure. */
must_check int remove_all(const char *path, char **ret_failed);
/* Removes what is in a directory, which is borrowed and stays; directories that their owner, who we
 * are, has closed are opened. 0 or -errno. */
must_check int remove_inside(int dir);
