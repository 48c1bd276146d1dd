/* SPDX-License-Identifier: MIT */
/* The whole API on one screen. Matching, 404, 405, authentication, /openapi.json and /docs use it.
 */
#include "http/api.h"

static uint64_t execute_body_max(const struct app *a)
{
    return a->config.body_max_execute;
}

/* clang-format off */
const struct route routes[] = {
    {"GET",    "/",                  api_root,         0,          "meta", "what this is",                        NULL},
    {"GET",    "/health",            api_health,       ROUTE_HEAD, "meta", "can work be accepted",                NULL},
    {"GET",    "/info",              api_info,         ROUTE_AUTH, "meta", "version, host and load",              NULL},
    {"GET",    "/metrics",           api_metrics,      ROUTE_AUTH, "meta", "numbers for Prometheus",              NULL},
    {"GET",    "/openapi.json",      api_openapi,      0,          "meta", "this API as an OpenAPI document",     NULL},
    {"GET",    "/docs",              api_docs,         0,          "meta", "this API as a page",                  NULL},
    {"GET",    "/v1/capabilities",   api_capabilities, ROUTE_AUTH, "meta", "isolation, limits and languages here", NULL},
    {"POST",   "/execute",           api_execute,      ROUTE_AUTH | ROUTE_BODY, "executions",
     "run code in a fresh sandbox and wait for the result", execute_body_max},
    {"GET",    "/v1/executions/*",   api_execution_get,    ROUTE_AUTH, "executions",
     "state and result of an execution", NULL},
    {"DELETE", "/v1/executions/*",   api_execution_delete, ROUTE_AUTH, "executions",
     "end an execution early, or forget a finished one", NULL},
    {"GET",    "/v1/executions/*/artifacts/**", api_artifact, ROUTE_AUTH | ROUTE_HEAD, "executions",
     "a file that an execution left behind", NULL},
};
/* clang-format on */
const size_t routes_n = ARRAY_LEN(routes);

const struct shape *api_shape_of(const struct route *r)
{
    return r->handler == api_execute ? &execute_shape : NULL;
}
