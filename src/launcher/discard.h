/* SPDX-License-Identifier: MIT */
/*
 * Removing a kept workspace. It gets another name at once, so the next sandbox of that name finds
 * none. Then a child of the launcher becomes the user that it belongs to, without privileges and
 * with the workspace as its root directory, and removes what is in it: whatever a tenant has left
 * there, nothing else can be reached.
 */
#pragma once

#include "launcher/measure.h"

/* One answer (struct launch_measured) goes into the descriptor when it is over; it is borrowed. */
void discard_start(struct measures *all, struct kept *k, const struct launch_msg *m, int out);
/* Goes on with what an earlier launcher has begun. */
void discard_leftovers(struct measures *all, const struct kept *k);
