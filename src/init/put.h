/* SPDX-License-Identifier: MIT */
/*
 * A file for a program that is there already: written by init, as the sandbox's user and in its
 * limits. Whatever was at its place is replaced, never written through: no link, FIFO or lease of
 * a tenant's is opened, so nothing here waits for one.
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"

/* `size` bytes of `from`, beginning at `at`, become the file `name` beneath `root`; directories on
 * the way are made. 0 or -errno. */
must_check int put_file(int root, const char *name, int from, int64_t at, int64_t size);
