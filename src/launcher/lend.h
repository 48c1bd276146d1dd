/* SPDX-License-Identifier: MIT */
/* The launcher's part of lending host directories: lazy.h tells how it works. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/launch.h"

struct slot;
struct slots;

/*
 * A child of the launcher makes the workspace of a sandbox with the directories that are lent to
 * it, which takes the host's root, and the keeper of the sandbox need not have that. Returns a
 * socket on which the sandbox hears an int (0 or -errno) with a detached mount; fds are those of
 * PREPARE.
 */
must_check int lend_start(const struct slots *all, const struct slot *s, const struct launch_msg *m,
                          const int *fds, struct err *e);
/* HELLO says whether directories can be lent, or why not. */
void lend_tell(const struct slots *all, struct launch_msg *hello);
