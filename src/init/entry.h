/* SPDX-License-Identifier: MIT */
/*
 * What is told about files: struct help_entry (wire.h), one after the other in messages of up to
 * HELP_DATA_MAX bytes.
 *
 * Names of owners come from /etc/passwd and /etc/group of the sandbox, which a tenant may have
 * written: a helper parses them, as the tenant's own user.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/wire.h"

enum { ENTRY_PATH_MAX = 28 * 1024 }; /* a longer path is not told */

/* The name that a number had when it was looked up last. */
struct entry_owner {
    bool known;
    uint32_t id;
    char name[HELP_OWNER_MAX];
};

/* Where records are collected. Large: one per helper and request. */
struct entry_list {
    int sock;
    enum help_verb verb; /* of its messages: HELP_ENTRIES or HELP_EVENTS */
    uint64_t sent_us;    /* the last message */
    uint32_t mode;       /* of what was added last */
    struct entry_owner owner, group;
    size_t n;
    char bytes[HELP_DATA_MAX];
};

void entry_list_init(struct entry_list *l, int sock, enum help_verb verb);
/* Adds what `name` in the directory is; `path` is what it is called in the record. Sends when there
 * is no room. 0 or -errno: it could not be looked at. */
int entry_add(struct entry_list *l, int dir, const char *name, const char *path);
/* Writes the record to `out` instead, which has room for ENTRY_RECORD_MAX. Its size, or -errno. */
enum { ENTRY_RECORD_MAX = HELP_DATA_MAX - 16 * 1024 };
ssize_t entry_record(struct entry_list *l, int dir, const char *name, const char *path, char *out);
/* Adds bytes that are a whole record. */
void entry_put(struct entry_list *l, const void *p, size_t n);
/* Sends what there is. */
void entry_flush(struct entry_list *l);
/* While something takes long: what there is, possibly nothing, at least a few times per second. */
void entry_tick(struct entry_list *l);
/* Tells about one path, and nothing else. 0 or -errno. */
int entry_tell(int sock, const char *path);

/* Metadata of a file, NAME NUL VALUE NUL …: replaces all there was. 0 or -errno; -ENOTSUP: the file
 * system keeps none. */
int entry_set_metadata(int fd, const char *p, size_t n);
