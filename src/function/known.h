/* SPDX-License-Identifier: MIT */
/*
 * The files of a program that lives on, as they were when they were last looked at: what the next
 * change set is measured against. Pure.
 *
 * Contents are kept while there is room, so that a later change can say what was there before; of
 * the others only what the kernel says of them is known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "function/changes.h"
#include "function/request.h"

enum { KNOWN_CONTENT_MAX = 8 << 20 }; /* bytes of contents that were learnt */

struct known {
    struct call_file *files;   /* owned array; those that were given are borrowed, with contents */
    struct file_stamp *stamps; /* owned array: of each of them */
    bool *learnt;              /* owned array: path and content are ours */
    size_t n, cap;
    size_t bytes; /* of contents that are ours */
};

/* From now on these are there, and nothing else. They must stay until the next time. */
must_check int known_begin(struct known *k, const struct call_file *given, size_t n);
void known_done(struct known *k);

/* One more was put there by us. Path and content are copied. */
must_check int known_add(struct known *k, const char *path, struct bytes content);
/* The files are as the changes say: those measured against `k`, complete. What a change says of
 * what was there before is copied to `ret_old`, which must live as long as the changes. */
must_check int known_update(struct known *k, struct changes *all, struct call_file **ret_old);
/* As many as there are changes. NULL is fine. */
void known_old_free(struct call_file *old, size_t n);
