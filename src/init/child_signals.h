/* SPDX-License-Identifier: MIT */
/* That a child has died, or says that it is done, as a descriptor. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum {
    SIGNALS_DONE = 1,  /* a first process may say that it is done (runner_leave()) */
    SIGNALS_ALONE = 2, /* no other signal is to reach us */
};

/* A descriptor that is readable when a child has died. One in a process. Or -errno. */
must_check int signals_open(unsigned flags);
/* Takes what made it readable. True: `from` said that it is done, with this value; there may be
 * more. */
bool signals_next(int fd, pid_t from, int *ret_value);
/* The same, for whom only children matter. */
void signals_take(int fd);
