/* SPDX-License-Identifier: MIT */
#include "app/mcp/version.h"

#include <stddef.h>
#include <string.h>

const char *const mcp_versions[] = {
    MCP_MODERN, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", NULL,
};

const char *mcp_handshake_version(const char *name)
{
    for (const char *const *v = mcp_versions + 1; *v; v++)
        if (strcmp(*v, name) == 0)
            return *v;
    return NULL;
}
