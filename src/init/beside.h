/* SPDX-License-Identifier: MIT */
/*
 * A file that is written beside its place and takes it when it is whole: until then, and when the
 * writing fails or breaks off, what was there before is untouched.
 *
 * Where the file system can (O_TMPFILE) it has no name before that, so a process that is killed
 * leaves nothing behind; elsewhere it is a hidden name in the same directory. One that replaces
 * another file has such a name between two system calls.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum { BESIDE_NAME_MAX = 40 };

struct beside {
    int dir; /* borrowed */
    int fd;  /* owned; -1: none */
    bool named;
    char name[BESIDE_NAME_MAX];
};
#define BESIDE_NONE ((struct beside){.dir = -1, .fd = -1})

/* In that directory, with that mode as open() would take it. 0 or -errno. */
must_check int beside_open(struct beside *b, int dir, mode_t mode);
/* Takes the place of `base`, which must be no directory. 0 or -errno; closed either way. */
must_check int beside_commit(struct beside *b, const char *base);
/* Forgets what was written. One that is closed is fine. */
void beside_drop(struct beside *b);
