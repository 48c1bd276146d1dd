/* SPDX-License-Identifier: MIT */
/*
 * What is in a directory, and in those below it: each directory before what is in it, names sorted
 * by their bytes, links told and not entered. What vanishes meanwhile or cannot be entered is left
 * out.
 *
 * The order is total, so a list can be continued behind any of its entries, also one that is gone.
 */
#pragma once

#include "wire/wire.h"

enum { WALK_DEPTH_MAX = 256 }; /* one descriptor and one list of names each */

/* Sends the answer. `after`: the relative path of an entry; "": the beginning. */
void walk_tell(int sock, const struct init_msg *m, const char *path, const char *after);
