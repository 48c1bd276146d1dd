/* SPDX-License-Identifier: MIT */
/*
 * The families of endpoints, one row each: a folder beside this file defines NAME_dialect (e2b has
 * five). The first answers what belongs to none.
 */
#include "http/api/api.h"

/* clang-format off */
#define DIALECTS(row) \
    row(meta) \
    row(execute) \
    row(functions) \
    row(koyeb) \
    row(sandboxes) \
    row(packages) \
    row(tools) \
    row(mcp) \
    row(mcp_other) \
    row(console) \
    row(e2b) \
    row(e2b_preflight) \
    row(e2b_envd) \
    row(e2b_interpreter) \
    row(e2b_ports)
/* clang-format on */

#define DECLARE(name) extern const struct dialect name##_dialect;
#define ADDRESS(name) &name##_dialect,

DIALECTS(DECLARE)
const struct dialect *const api_dialects[] = {DIALECTS(ADDRESS) NULL};
