/* SPDX-License-Identifier: MIT */
/* The endpoints of the Model Context Protocol, for the rows of the family. */
#pragma once

#include <stdbool.h>

#include "http/api/api.h"

api_fn mcp_post, mcp_get, mcp_delete, mcp_options, mcp_well_known;

/* Answers a refusal of the transport: an error of JSON-RPC without an id. */
void mcp_refuse(struct http_call *c, int status, const char *words);
/* Host and Origin: false when it has refused. */
bool mcp_admit(struct http_call *c);
