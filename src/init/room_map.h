/* SPDX-License-Identifier: MIT */
/* What a plan names, as it is called in the room of a plain sandbox (room.h). */
#pragma once

#include "base/cleanup.h"
#include "init/runner.h"

/* The path moved into the room, in new memory, or `path` itself if it is the host's. NULL: no
 * memory. */
char *room_path(const char *room, char *path);
/* The same for cwd, arguments and environment. 0 or -errno. */
must_check int room_map(const char *room, struct job *j);
