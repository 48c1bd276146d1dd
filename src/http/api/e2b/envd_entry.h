/* SPDX-License-Identifier: MIT */
/* What envd's /files and file system RPC share: users, paths, EntryInfo. */
#pragma once

#include <stdbool.h>

#include "app/sandbox/sandboxes.h"
#include "base/jw.h"
#include "core/port_files.h"
#include "http/api/sandboxes/entry_json.h"
#include "http/server/http_call.h"

enum { ENVD_USER_MAX = 64 };

/* The OS user that a request names: `username` of the query, or Authorization: Basic NAME:. It is
 * no credential. "": none. False: there is no such user. */
bool envd_user(const struct http_call *c, char out[ENVD_USER_MAX]);
/*
 * Where a path leads: relative ones and ~ begin in the user's home, and so does the empty one. To
 * be freed. ERR_CALLER: another user's home, or no path at all.
 */
must_check int envd_path(const struct persistent *p, const char *user, const char *path, size_t n,
                         char **ret, struct err *e);

/* An EntryInfo. */
void envd_write_entry(struct jw *w, const struct entry_path *p, const struct file_entry *e);
/* "key": "metadata" of an entry, when it has some. */
void envd_write_metadata(struct jw *w, const struct file_entry *e);
