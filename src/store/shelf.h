/* SPDX-License-Identifier: MIT */
/*
 * Directories of dependencies, one for each owner, replaced as a whole and never changed.
 *
 *   <root>/<owner>/<number>      the highest number is what counts
 *   <root>/.new-<random>         being filled
 *
 * A new one is filled beside the old one and gets its name in one step. The old one is removed when
 * the last run that uses it has ended; what a killed daemon left is removed at the next start. All
 * files are written by the daemon into directories that nobody else can write, so that no name a
 * tenant chose can lead anywhere else. Disk work is done beside the loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/port_work.h"

enum {
    SHELF_OWNER_MAX = 128,  /* with its NUL */
    SHELF_NAME_MAX = 152,   /* "owner/number" with its NUL */
    SHELF_PATH_MAX = 4096,  /* of a file inside */
    SHELF_DEPTH_MAX = 64,   /* directories above one */
    SHELF_HEAD_MAX = 65536, /* of what is read of a file on request */
};

struct shelf;
struct shelf_item;  /* a directory in use */
struct shelf_build; /* one being filled */

must_check int shelf_open(const char *root, struct work_pool *pool, struct shelf **ret,
                          struct err *e);
/* The workers end: whatever is still to be removed is left for the next start. NULL is fine. */
void shelf_stop(struct shelf *s);
/* Nothing is held or filled any more. NULL is fine. */
void shelf_close(struct shelf *s);

/* What the owner has now, kept as it is until released; NULL: nothing, or no memory. */
struct shelf_item *shelf_hold(struct shelf *s, const char *owner);
bool shelf_has(const struct shelf *s, const char *owner);     /* anything */
bool shelf_is_held(const struct shelf *s, const char *owner); /* by anybody */
/* Takes everything from an owner of whom nothing is held. */
void shelf_remove(struct shelf *s, const char *owner);
/* The same for every owner of whom that is not true. */
void shelf_keep_only(struct shelf *s, bool (*keep)(void *user, const char *owner), void *user);
const char *shelf_item_name(const struct shelf_item *i); /* "owner/number" */
void shelf_release(struct shelf_item *i);                /* NULL is fine */

/* ---- filling ---- */

must_check int shelf_build_new(struct shelf *s, struct shelf_build **ret, struct err *e);

/* One file. The path is relative; what leads out is refused. */
struct shelf_file {
    const char *path;
    uint32_t mode;
    int64_t mtime_s, mtime_ns;
    int fd; /* taken */
    uint64_t size;
    bool head; /* its first bytes are wanted */
};
/* On the loop. head is "" unless it was wanted. */
typedef void shelf_added_fn(void *user, bool ok, const char *path, const char *head, size_t head_n);
must_check int shelf_build_add(struct shelf_build *b, struct shelf_file *f, shelf_added_fn *fn,
                               void *user);

/* Makes it what the owner has. On the loop: an error, or err.kind ERR_NONE. The build is gone. */
typedef void shelf_published_fn(void *user, const struct err *e);
void shelf_build_publish(struct shelf_build *b, const char *owner, shelf_published_fn *fn,
                         void *user);
/* Forgets it. Nothing may be on its way into it. NULL is fine. */
void shelf_build_drop(struct shelf_build *b);
