/* SPDX-License-Identifier: MIT */
/* What the header of a picture says: PNG, JPEG, GIF, WebP. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PICTURE_SIDE_MAX = 8000 }; /* a larger one makes conversations of some clients unusable */

/* Is it one of these, and no side longer than that? */
bool picture_can_be_shown(const void *p, size_t n);
