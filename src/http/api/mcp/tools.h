/* SPDX-License-Identifier: MIT */
/* The tools, for their table: of each its arguments and what it does (tool_*.c). */
#pragma once

#include "http/api/mcp/tool.h"

typedef void tool_fn(struct tool_call *t);

struct tool_create_sandbox {
    struct bytes name;
    struct shape_strings env;
    int64_t memory_mb, idle_minutes; /* 0: the default */
};
struct tool_delete_sandbox {
    struct bytes sandbox;
};
extern const struct shape tool_create_sandbox_shape, tool_list_sandboxes_shape;
extern const struct shape tool_delete_sandbox_shape;
tool_fn tool_create_sandbox, tool_list_sandboxes, tool_delete_sandbox;
