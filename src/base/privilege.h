/* SPDX-License-Identifier: MIT */
/* What a process may do, and what it gives up for good. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* As many open files as the hard limit allows. */
void privilege_all_files(void);
/* Root of the host, not only of a user namespace, whose root cannot make devices or become any
 * user. */
bool privilege_is_host_root(void);
/* Another user and group, and no others. -1: errno. */
must_check int privilege_become(uid_t uid, gid_t gid);
/* No capabilities, and no program gives us any. -errno */
must_check int privilege_give_up(void);
