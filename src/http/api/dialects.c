/* SPDX-License-Identifier: MIT */
/*
 * The families of endpoints, one row each: NAME is the folder beside this file that defines
 * NAME_dialect. The first answers what belongs to none.
 */
#include "http/api/api.h"

/* clang-format off */
#define DIALECTS(row) \
    row(meta) \
    row(execute) \
    row(functions) \
    row(koyeb) \
    row(sandboxes) \
    row(packages)
/* clang-format on */

#define DECLARE(name) extern const struct dialect name##_dialect;
#define ADDRESS(name) &name##_dialect,

DIALECTS(DECLARE)
const struct dialect *const api_dialects[] = {DIALECTS(ADDRESS) NULL};
