/* SPDX-License-Identifier: MIT */
/* What a synchronisation (call_sync.h) has to say, as rows of JSON. */
#pragma once

#include "base/buf.h"
#include "function/changes.h"
#include "function/mount.h"

struct sync_rows {
    struct buf failed, skipped, events; /* owned */
};

void sync_rows_path(struct buf *rows, const struct change *one);
void sync_rows_failed(struct sync_rows *r, const struct change *one, const char *error);
/* error: NULL with nothing to say, "" for success. Returns the row, until the next one; p is NULL
 * when there was no memory for it. */
struct bytes sync_rows_event(struct sync_rows *r, const struct mount *m, const char *event,
                             const struct change *one, const char *error);
/* {synced, failed, skipped, rolledBack, events} */
void sync_rows_put(const struct sync_rows *r, const struct buf *synced, bool rolled_back,
                   struct buf *out);
void sync_rows_done(struct sync_rows *r);
