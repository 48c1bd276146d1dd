/* SPDX-License-Identifier: MIT */
/* Of the launcher itself: what its start and its work have from each other. */
#pragma once

#include "launcher/launcher.h"

/* What the loop is told beside the keepers (slot_of()), which have smaller numbers. */
#define LAUNCHER_DAEMON   UINT64_MAX
#define LAUNCHER_CHILDREN (UINT64_MAX - 1)

/* To the daemon; ends us when that cannot be told. fds are borrowed. */
void launcher_say(struct launcher *l, const struct launch_msg *m, const int *fds, size_t n);
/* Serves for ever. */
void launcher_loop(struct launcher *l);
