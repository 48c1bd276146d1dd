/* SPDX-License-Identifier: MIT */
/* The descriptors between the daemon and a sandbox, as pairs. */
#pragma once

#include "core/port_jail.h"
#include "wire/wire.h"

/* Opens those from `first` to before `end` of: control socket, job, in, out, err. The daemon's ends
 * go into the sandbox, non-blocking; the others are the caller's. 0 or -errno, with what was opened
 * so far in place. */
must_check int ends_open(struct sandbox *s, int theirs[LAUNCH_FDS_PREPARE], size_t first,
                         size_t end);
void ends_close(struct sandbox *s); /* those that are open */
