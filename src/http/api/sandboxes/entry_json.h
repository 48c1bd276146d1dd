/* SPDX-License-Identifier: MIT */
/* What is told about files of a sandbox, as JSON: what the native answers and E2B's share. */
#pragma once

#include <stdbool.h>

#include "base/jw.h"
#include "core/port_files.h"

enum { ENTRY_NAME_SLACK = 2048, ENTRY_PERMISSIONS = 11 };

/* Takes out of an absolute path what says nothing: "/a//./b/" is "/a/b". ".." stays, as links may
 * be before it. */
void entry_path_clean(char *path);

/* The path of an entry: `base` and, behind a slash, what it is called below that. With base == NULL
 * its own path is the whole. The views of the entry must outlive the result. */
struct entry_path {
    const char *base; /* absolute, without a slash at its end unless it is "/"; or NULL */
    struct bytes rest;
};

/* The last part of it. */
struct bytes entry_name(const struct entry_path *p);
/* Appends the path as a JSON string. */
void entry_write_path(struct jw *w, const struct entry_path *p);
/* "-rw-r--r--"; `link`: what a symbolic link begins with. */
void entry_permissions(uint32_t mode, char link, char out[ENTRY_PERMISSIONS]);

/* The native object. */
void entry_write(struct jw *w, const struct entry_path *p, const struct file_entry *e);
/* Bytes that its JSON may take at most. */
size_t entry_json_max(const struct entry_path *p, const struct file_entry *e);
