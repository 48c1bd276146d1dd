/* SPDX-License-Identifier: MIT */
/*
 * The known name that is nearest to one that somebody wrote. Only letters and digits count, in any
 * case: sessionId and session_id are the same.
 */
#pragma once

#include <stddef.h>

enum { NEAREST_NAME_MAX = 64 };

struct nearest {
    char wrong[NEAREST_NAME_MAX];
    size_t wrong_n, least; /* half edits */
    const char *found;     /* borrowed from nearest_look(); NULL: none is near */
};

void nearest_begin(struct nearest *n, const char *wrong);
void nearest_look(struct nearest *n, const char *known);
/* Edits that lead from one to the other, of a name that nearest_begin() got. */
size_t nearest_distance(const struct nearest *n, const char *known);
