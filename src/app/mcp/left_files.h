/* SPDX-License-Identifier: MIT */
/* Files that runs have left in sandboxes, so that clients can be told of them: the newest ones. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/sandbox/sandboxes.h"

enum { LEFT_FILES_MAX = 256 };

struct left_file {
    TAILQ_ENTRY(left_file) link;
    uint64_t owner, size;
    char sandbox[PERSISTENT_ID_MAX + 1];
    char path[]; /* absolute, in the sandbox */
};
TAILQ_HEAD(left_file_list, left_file);

struct left_files {
    struct left_file_list list; /* owned; the newest first */
    size_t n;
};

void left_files_init(struct left_files *all);
void left_files_done(struct left_files *all);
/* Of a file that is known the new size counts. Without memory nothing is noted. */
void left_files_note(struct left_files *all, uint64_t owner, const char *sandbox, const char *path,
                     uint64_t size);
