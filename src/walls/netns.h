/* SPDX-License-Identifier: MIT */
/*
 * Network namespaces: loopback up, nothing else.
 *
 * Making one costs 0.3 ms here and as much again in the kernel's workers, so a
 * slot keeps its own for the next sandbox, but only if the last one left no
 * trace in it: no socket of any family alive, and every counter that a
 * successor could read still at its first value. Addresses and routes cannot
 * change, because no sandbox has a capability over the namespace.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { NETNS_FILES = 4 };

struct netns {
    int files[NETNS_FILES]; /* owned: what the kernel tells about it, or -1 */
    uint64_t print;
};

void netns_init(struct netns *n);
/* The calling process moves to a new one, and forgets the last. 0 or -errno. */
must_check int netns_new(struct netns *n);
/* True when nothing in it differs from the moment it was made. */
bool netns_untouched(const struct netns *n);
