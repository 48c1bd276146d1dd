/* SPDX-License-Identifier: MIT */
/*
 * Memory of a sandbox without a memory controller: init adds up what /proc and
 * the tmpfs mounts say, a few times per second. Coarser than a control group
 * (a fast program overshoots), therefore never declared as the trait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

extern const int watch_ms; /* between two looks */

/* Bytes in use, of all there is (top 0) or of the process `top` and those below it; exact only when
 * a quick look says that they exceed max. */
uint64_t watch_memory_used(pid_t top, uint64_t max);
/* Is it more than max? */
bool watch_exceeded(pid_t top, uint64_t max);
