/* SPDX-License-Identifier: MIT */
/* Published tools: the rows of the family. */
#include "http/api/api.h"
#include "http/api/problem.h"
#include "http/api/tools/tools_api.h"

/* clang-format off */
static const struct route tools_rows[] = {
    {"PUT",    "/v1/tools/*", api_tools_publish, ROUTE_AUTH | ROUTE_BODY, "tools",
     "publish the functions of a source text as tools, in place of what the bundle had",
     NULL, &tools_publish_shape,
     .example = "{\"language\": \"python\", \"code\": \"def add(a: int, b: int = 2) -> int:\\n    'Add two numbers.'\\n    return a + b\"}",
     .answer = {{201, "ToolBundle"}, {200, "ToolBundle"}}},
    {"GET",    "/v1/tools",   api_tools_list,    ROUTE_AUTH, "tools",
     "the bundles there are, and their tools as language models see them",
     .answer = {{200, "Tools"}}},
    {"GET",    "/v1/tools/*", api_tools_get,     ROUTE_AUTH, "tools",
     "a bundle; an earlier version with version=N, its source text with source=true",
     .answer = {{200, "ToolBundle"}}, .query = "version source"},
    {"DELETE", "/v1/tools/*", api_tools_delete,  ROUTE_AUTH, "tools",
     "remove a bundle with all its versions",
     .answer = {{204}}},
    {"POST",   "/v1/tools/*/restore", api_tools_restore, ROUTE_AUTH | ROUTE_BODY, "tools",
     "make an earlier version the newest one",
     NULL, &tools_restore_shape, .example = "{\"version\": 1}",
     .answer = {{200, "ToolBundle"}}},
    {"POST",   "/v1/tools/call", api_tools_call, ROUTE_AUTH | ROUTE_BODY, "tools",
     "call a published tool; answered as a function call",
     NULL, &tools_call_shape, .example = "{\"tool\": \"add\", \"arguments\": {\"a\": 1}}",
     .answer = {{200, "FunctionResult"}}},
    {"GET",    "/v1/executions/*/tool_calls", api_tool_calls, ROUTE_AUTH, "tools",
     "the tools that code of run_code has called, with arguments and values",
     .answer = {{200, "ToolCalls"}}},
};
/* clang-format on */

const struct dialect tools_dialect = {
    .name = "tools",
    .title = "Tools",
    .about = "Functions of source texts, published as tools for language models.",
    API_OURS(tools_rows),
};
