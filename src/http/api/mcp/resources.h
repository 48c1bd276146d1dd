/* SPDX-License-Identifier: MIT */
/*
 * Resources: a guide to the sandboxes, their files, and artifacts of executions. A client that
 * ignores them reaches all of it by tools.
 */
#pragma once

#include "http/api/mcp/exchange.h"

/* The member `resources` of a list, and `resourceTemplates`. */
void mcp_write_resources(const struct mcp_exchange *x, struct jw *w);
void mcp_write_resource_templates(struct jw *w);
/* resources/read: answers, now or later. */
void mcp_resource_read(struct mcp_exchange *x);

/* Appends the address of a file: of a sandbox and an absolute path in it. */
void mcp_file_uri(struct buf *out, const char *sandbox, const char *path);
