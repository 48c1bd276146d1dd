/* SPDX-License-Identifier: MIT */
/* The endpoints of published tools, for the rows of the family. */
#pragma once

#include "http/api/api.h"

api_fn api_tools_publish, api_tools_list, api_tools_get, api_tools_delete, api_tools_restore;
api_fn api_tools_call, api_tool_calls;

extern const struct shape tools_publish_shape, tools_restore_shape, tools_call_shape;
