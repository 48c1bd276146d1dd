/* SPDX-License-Identifier: MIT */
/* What the daemon tells about itself: the rows of the family. */
#include "http/api/api.h"
#include "http/api/problem.h"

/* clang-format off */
static const struct route meta_rows[] = {
    {"GET",    "/",                  api_root,         0,          "meta", "what this is; a browser is led to /console", NULL,
     .answer = {{200, "Root"}, {307}}},
    {"GET",    "/health",            api_health,       ROUTE_HEAD, "meta", "can work be accepted",                NULL,
     .answer = {{200, "Health"}}},
    {"GET",    "/info",              api_info,         ROUTE_AUTH, "meta", "version, host and load",              NULL,
     .answer = {{200, "Info"}}},
    {"GET",    "/metrics",           api_metrics,      ROUTE_AUTH, "meta", "numbers for Prometheus",              NULL,
     .answer = {{200, NULL, "text/plain"}}},
    {"GET",    "/openapi.json",      api_openapi,      0,          "meta", "this API as an OpenAPI document",     NULL,
     .answer = {{200, "OpenApi"}}},
    {"GET",    "/docs",              api_docs,         0,          "meta", "this API as a page",                  NULL,
     .answer = {{200, NULL, "text/html"}}},
    {"GET",    "/v1/capabilities",   api_capabilities, ROUTE_AUTH, "meta", "isolation, limits and languages here",
     .answer = {{200, "Capabilities"}}},
};
/* clang-format on */

const struct dialect meta_dialect = {
    .name = "meta",
    .title = "About the daemon",
    .about = "What it is, whether it is well, and what it can do here.",
    API_OURS(meta_rows),
};
