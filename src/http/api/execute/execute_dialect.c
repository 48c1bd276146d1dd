/* SPDX-License-Identifier: MIT */
/* Executions: the rows of the family. */
#include "http/api/api.h"
#include "http/api/problem.h"

static uint64_t body_max(const struct app *a)
{
    return a->config.body_max_execute;
}

/* clang-format off */
static const struct route execute_rows[] = {
    {"POST",   "/execute",           api_execute,      ROUTE_AUTH | ROUTE_BODY, "executions",
     "run code in a fresh sandbox and wait for the result; text/event-stream: its output while it runs", body_max, &execute_shape,
     .example = "{\"language\": \"python\", \"code\": \"def handler(event):\\n    return event\", \"event\": {\"n\": 1}}",
     .answer = {{200, "ExecutionResult|ExecutionPending"}}},
    {"GET",    "/v1/executions",     api_execution_list,   ROUTE_AUTH, "executions",
     "the executions there are, the newest first",
     .answer = {{200, "Executions"}}, .query = "limit cursor status state language session_id"},
    {"GET",    "/v1/executions/*",   api_execution_get,    ROUTE_AUTH, "executions",
     "state and result of an execution; text/event-stream: its output, too",
     .answer = {{200, "Execution"}}},
    {"DELETE", "/v1/executions/*",   api_execution_delete, ROUTE_AUTH, "executions",
     "end an execution early, or forget a finished one",
     .answer = {{204}, {202, "ExecutionStopping"}}},
    {"GET",    "/v1/executions/*/artifacts/**", api_artifact, ROUTE_AUTH | ROUTE_HEAD, "executions",
     "a file that an execution left behind",
     .answer = {{200, NULL, "application/octet-stream"}}},
    {"GET",    "/v1/workspaces",     api_workspaces_list,  ROUTE_AUTH, "executions",
     "the kept workspaces of sessions, the newest first",
     .answer = {{200, "Workspaces"}}, .query = "limit cursor"},
    {"GET",    "/v1/workspaces/*",   api_workspace_get,    ROUTE_AUTH, "executions",
     "the kept workspace of a session, measured now",
     .answer = {{200, "Workspace"}}},
    {"DELETE", "/v1/workspaces/*",   api_workspace_delete, ROUTE_AUTH, "executions",
     "remove the kept workspace of a session that no execution is using",
     .answer = {{204}}},
    {"POST",   "/internal/session-config/sync", api_dependencies_sync, ROUTE_AUTH | ROUTE_BODY, "executions",
     "install the Python packages of a session, in place of those it had", NULL, &dependencies_shape,
     .example = "{\"session_id\": \"s1\", \"language_runtime\": \"python3.11\", \"python_package_index_url\": \"https://index.example/simple/\", \"sync_mode\": \"replace\", \"dependencies\": []}",
     .answer = {{200, "DependencySync"}}},
};
/* clang-format on */

const struct dialect execute_dialect = {
    .name = "execute",
    .title = "Executions",
    .about =
        "Run a program once, in a fresh sandbox. The result says how it ended and what it left.",
    API_OURS(execute_rows),
};
