/* SPDX-License-Identifier: MIT */
/* What clients are told about the tools there are: ours in their order, then published ones by
 * name, in pages. */
#pragma once

#include "http/api/mcp/exchange.h"

enum { MCP_TOOLS_PAGE = 100, MCP_CURSOR_MAX = 128 };

struct published;

/* {"name", "title", "description", "inputSchema", "annotations"} */
void mcp_write_published(struct jw *w, const struct published *t);
/* The members `tools` and, if there are more, `nextCursor`. False: the cursor of the request is
 * none of ours. */
bool mcp_write_tools(const struct mcp_exchange *x, struct jw *w);
