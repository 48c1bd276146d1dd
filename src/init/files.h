/* SPDX-License-Identifier: MIT */
/*
 * What a helper does with files: opened, made and removed inside the sandbox, as
 * its user and in its limits. Ordinary files leave as descriptors; nothing
 * outside ever opens a path that a tenant made.
 *
 * Nothing here waits for a tenant: FIFOs, terminals and leases are opened with
 * O_NONBLOCK and answer at once or not at all. Paths are those of the request,
 * links are followed where a program's open() would, relative ones begin at
 * /workspace. Failures carry the operation and the path it failed at.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/wire.h"

/* Carries out one request: `bytes` are the path (m->name_n bytes) and what follows it, with a NUL
 * behind them. False: no such verb. The descriptor (or -1) stays the caller's.
 * shared: of all processes only those of our own tree are the sandbox's. */
bool files_serve(int sock, const struct init_msg *m, char *bytes, size_t n, int fd, bool shared);

/* A directory and its parents, unless they are there. 0, or -errno and the path it failed at. */
int files_make_directories(const char *path, char failed[PATH_MAX]);
