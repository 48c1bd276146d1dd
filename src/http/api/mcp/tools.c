/* SPDX-License-Identifier: MIT */
/* The tools there are. */
#include "http/api/mcp/tools.h"

/* clang-format off */
const struct mcp_tool mcp_tools[] = {
    {"create_sandbox",  &tool_create_sandbox_shape,  sizeof(struct tool_create_sandbox),  tool_create_sandbox},
    {"list_sandboxes",  &tool_list_sandboxes_shape,  0,                                   tool_list_sandboxes},
    {"delete_sandbox",  &tool_delete_sandbox_shape,  sizeof(struct tool_delete_sandbox),  tool_delete_sandbox},
    {0},
};
/* clang-format on */
