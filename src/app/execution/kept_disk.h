/* SPDX-License-Identifier: MIT */
/*
 * Finished executions on disk, so that they outlive the daemon, for as long as the registry keeps
 * them.
 *
 * Making and removing a file costs more than many executions do. So what has ended within BATCH_MS
 * becomes one file, <state>/executions/<number>, a row of records (kept_file.h); it is removed when
 * the last of them is forgotten. One that a client deletes is made unreadable in its place. A
 * worker does all of it. Nothing is synced: files survive the end of the daemon, however it comes,
 * but maybe not that of the host, and a sudden end loses what ended in the last BATCH_MS.
 */
#pragma once

#include "app/execution/execution.h"
#include "base/cleanup.h"
#include "base/err.h"

struct kept_disk;

/* Opens the directory and reads what is there into the registry; drops copies of artifacts that
 * belong to nothing. */
must_check int kept_disk_open(struct app *a, struct kept_disk **ret, struct err *e);
/* The workers have ended: what comes now waits for kept_disk_close(). NULL is fine, as there. */
void kept_disk_stop(struct kept_disk *d);
/* Writes what has not been written. */
void kept_disk_close(struct kept_disk *d);

/* Both are nothing for NULL. */
void kept_disk_put(struct kept_disk *d, struct execution *x);
void kept_disk_remove(struct kept_disk *d, struct execution *x);
