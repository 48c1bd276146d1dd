/* SPDX-License-Identifier: MIT */
/* Resources: a guide to the sandboxes, and their files. */
#pragma once

#include "http/api/mcp/exchange.h"

struct app;

/* The member `resources` of a list, and `resourceTemplates`. */
void mcp_write_resources(const struct app *a, struct jw *w);
void mcp_write_resource_templates(struct jw *w);
/* resources/read: answers, now or later. */
void mcp_resource_read(struct mcp_exchange *x);
