/* SPDX-License-Identifier: MIT */
/*
 * Memory of a sandbox without a memory controller: init adds up what /proc and
 * the tmpfs mounts say, a few times per second. Coarser than a control group
 * (a fast program overshoots), therefore never declared as the trait.
 */
#pragma once

#include <stdint.h>

enum { WATCH_MS = 25 };

/* Bytes in use; exact only when a quick look says that they exceed max. */
uint64_t watch_memory_used(uint64_t max);
