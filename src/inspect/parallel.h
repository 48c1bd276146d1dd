/* SPDX-License-Identifier: MIT */
/* Work in pieces that do not share anything: all processors take from it until nothing is left. */
#pragma once

#include <stddef.h>

enum { CREW_MAX = 4 }; /* threads, the caller among them */

typedef void crew_fn(void *user, size_t piece);
/* Returns when all of 0 … n-1 are done. They are begun in this order. */
void crew_run(size_t n, crew_fn *work, void *user);
