/* SPDX-License-Identifier: MIT */
/*
 * Limits of kept workspaces: bytes and files of each (SESSION_DISK_MB, SESSION_FILES) and a
 * reserve of the file system they are on (DISK_RESERVE_MB).
 *
 * They are ordinary directories of the host, so nothing stops a program at the limit. Instead a
 * look is taken while an execution runs, which ends it beyond a limit, and after it has ended. A
 * session that was found with more than half of a limit is remembered: its next execution starts
 * only after another look, and not at all while it is beyond. A look is a walk by a child of the
 * launcher; nobody here waits for it.
 */
#pragma once

#include "app/execution/session.h"
#include "base/cleanup.h"

struct app;
struct disk_look;
struct jail;
LIST_HEAD(disk_looks, disk_look);

/* why: NULL, or in words which limit is exceeded; borrowed. */
typedef void disk_fn(void *user, const char *why);

/* NULL: it could not be asked; then fn is never called. Otherwise once, unless cancelled. */
struct disk_look *disk_look(struct app *a, struct jail *j, struct session *s, disk_fn *fn,
                            void *user);
void disk_cancel(struct disk_look *d); /* NULL is fine */
/* The same for nobody: only the session remembers what was found. */
void disk_look_after(struct app *a, struct jail *j, struct session *s);
void disk_done(struct disk_looks *all); /* cancels all of them */
