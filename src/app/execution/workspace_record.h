/* SPDX-License-Identifier: MIT */
/*
 * Records of kept workspaces on disk: a file each, named as the workspace. Written and removed by a
 * worker, in the order they were asked for.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

struct work_pool;
struct workspace;
struct workspace_records;

/* Of what was read: name, id, created_us, used_us and saved_us are set. Borrowed. */
typedef void workspace_record_fn(void *user, const struct workspace *read);

/* Calls fn for every record there is. */
must_check int workspace_records_open(const char *path, struct work_pool *work,
                                      workspace_record_fn *fn, void *user,
                                      struct workspace_records **ret, struct err *e);
/* -1: no memory. */
must_check int workspace_records_put(struct workspace_records *r, const struct workspace *w);
void workspace_records_remove(struct workspace_records *r, const char *name);
/* There are no workers any more: the rest is written by workspace_records_close(). */
void workspace_records_stop(struct workspace_records *r);
void workspace_records_close(struct workspace_records *r); /* NULL is fine */
