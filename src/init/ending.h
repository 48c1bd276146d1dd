/* SPDX-License-Identifier: MIT */
/* The end of everything init has started, and of what that has. */
#pragma once

#include "init/init.h"

/* Returns when nothing is left. How the first process ended goes to *status, if it was still there
 * and status is not NULL. signals: of signals_open(). */
void ending_wait(const struct init *conf, int signals, pid_t first, int *status);
