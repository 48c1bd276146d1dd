/* SPDX-License-Identifier: MIT */
/* What a function returned, as the result of a tool. Pure. */
#pragma once

#include "app/function/function_task.h"

/*
 * Appends members of a result, without braces: `content`, `structuredContent` unless there is more
 * than text, `isError`. A value {"$mcp": {"content": [...]}} is the content itself, if it is well
 * formed.
 */
function_render_fn mcp_function_result;
