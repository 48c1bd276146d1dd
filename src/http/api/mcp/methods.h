/* SPDX-License-Identifier: MIT */
/* The methods of the Model Context Protocol: a table by name and era. */
#pragma once

#include <stdbool.h>

#include "http/api/mcp/exchange.h"

struct app;

/* Answers the request of x, now or later. session: NULL in the modern era. */
void mcp_method(struct mcp_exchange *x, struct mcp_session *session);
/* The answer of `initialize`, without an exchange: it opens the session. */
void mcp_write_initialized(struct jw *w, const struct app *a, const char *version);
/* Does the operator offer this tool? */
bool mcp_tool_is_offered(const struct app *a, const char *name);
/* {"supported": [...], "requested": "..."} for an error. */
void mcp_write_supported(struct buf *out, const char *requested);

/* Is `name` among the elements between commas? */
bool mcp_list_has(const char *list, const char *name, size_t n);
