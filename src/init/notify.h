/* SPDX-License-Identifier: MIT */
/*
 * Watching a directory of a sandbox, from inside: inotify as the sandbox's user, told as events
 * (HELP_EVENTS).
 *
 * Recursive: each directory below has a watch of its own, also those that are made or moved there
 * later. What a new directory holds already when its watch stands is told as created, once. A
 * directory that moves inside the tree keeps its watches and gets its new name.
 *
 * Where events are lost (the kernel's queue was full, because the daemon reads no faster; or there
 * are more directories than can be watched) OVERFLOW is told in their place.
 */
#pragma once

#include "wire/wire.h"

enum {
    NOTIFY_DIRECTORIES_MAX = 8192, /* of one watch */
    NOTIFY_DEPTH_MAX = 256,
    NOTIFY_NAME_MAX = 8192, /* bytes of a relative path */
};

/* Until the daemon ends it, and the process with it; returns when it failed, and DONE was sent. */
void notify_serve(int sock, const struct init_msg *m, const char *path);
