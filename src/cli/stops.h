/* SPDX-License-Identifier: MIT */
/* Signals that a command hears of at a descriptor instead of ending by them. */
#pragma once

#include "base/cleanup.h"

/* SIGINT, SIGTERM, SIGHUP, and SIGWINCH. A descriptor, or -1 after saying why. */
must_check int stops_open(void);
/* The next signal; 0: none has come. */
int stops_take(int fd);
