/* SPDX-License-Identifier: MIT */
/* Records of bundles on disk, and what the files of this folder share. */
#pragma once

#include "app/tools/toolbox.h"

/* The name of an error: the bundle or a tool is another one than expected. */
#define TOOLBOX_CONFLICT "Conflict"

/* ---- record.c: all of it blocks ---- */

void record_path(char out[TOOLBOX_PATH], const char *dir, const char *bundle, int64_t version);
/* The newest ones first; how many there are, at most `max`. */
size_t record_versions(const char *dir, const char *bundle, int64_t *out, size_t max);
must_check int record_load(const char *path, struct bundle **ret, struct err *e);
/* Whole, or not at all. */
must_check int record_save(const char *dir, const struct bundle *b, struct err *e);
/* Of too many versions the oldest go; keep 0: all of them, and their directory. */
void record_prune(const char *dir, const char *bundle, size_t keep);

/* ---- toolbox.c ---- */

void toolbox_dir(const struct toolbox *t, char out[TOOLBOX_PATH]);
void toolbox_put_in(struct toolbox *t, struct bundle *b); /* in place of the one of that name */
void toolbox_take_out(struct toolbox *t, struct bundle *b);
/* May it be there? ERR_CALLER: too many; an error named TOOLBOX_CONFLICT: a name is taken. */
must_check int toolbox_admits(const struct toolbox *t, const struct bundle *b,
                              toolbox_reserved_fn *reserved, struct err *e);

/* ---- publish.c ---- */

void publications_done(struct toolbox *t);
