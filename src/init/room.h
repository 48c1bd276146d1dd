/* SPDX-License-Identifier: MIT */
/*
 * The room of a plain sandbox: a directory of the host that stands for the top of a file system
 * nobody can give it without a mount namespace.
 *
 *   ROOM/workspace   fresh, or a link to a kept one
 *   ROOM/tmp
 *   ROOM/<dirs>      what a plan wants beside them
 *
 * Plans speak of /workspace and /tmp. What they name of that sort is moved into the room: the
 * working directory, files, arguments that are a path, and variables that are a path or a list of
 * paths. The text of a program is left alone: "/workspace" in there is the host's. Programs of
 * ours, which plans look for in /opt, are where they were installed.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum { ROOM_PATH_MAX = 128 };

/* Makes the directories; names: "app/data" beside the usual ones. A kept workspace is linked to.
 * 0 or -errno. */
must_check int room_make(const char *room, const char *names, int kept, uid_t uid, gid_t gid);
/* What is scanned afterwards: the workspace, or with other directories all of the room. -errno. */
must_check int room_tree(const char *room, bool all);
/* As root or as its owner; whatever a tenant has put there. */
void room_remove(const char *room);
