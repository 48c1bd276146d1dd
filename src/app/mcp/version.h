/* SPDX-License-Identifier: MIT */
/*
 * Versions of the Model Context Protocol. In the handshake era (2025-11-25 and older) a client
 * opens a session with `initialize`; in the modern era each request says its version and stands
 * alone.
 */
#pragma once

#include <stdbool.h>

#define MCP_MODERN "2026-07-28"
/* Every version, newest first; ends with NULL. */
extern const char *const mcp_versions[];
/* The version with a handshake of that name, as a static text; NULL: there is none. */
const char *mcp_handshake_version(const char *name);
