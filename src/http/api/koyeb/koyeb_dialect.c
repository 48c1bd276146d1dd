/* SPDX-License-Identifier: MIT */
/* The sandbox family at the paths and in the words of its SDKs: the rows. */
#include "http/api/koyeb/verbs.h"

/* clang-format off */
static const struct route koyeb_rows[] = {
    SANDBOX_VERBS(""),
    SANDBOX_VERBS("/koyeb-sandbox"),
    {"GET",    "/koyeb-sandbox/health", api_koyeb_health, ROUTE_ANY_METHOD, "sandbox",
     "can work be accepted, for the SDKs",
     .answer = {{200, NULL, "text/plain"}}},
};
/* clang-format on */

const struct dialect koyeb_dialect = {
    .name = "koyeb",
    .title = "Default sandbox",
    .about = "The sandbox that is always there, at the paths and with the answers that Koyeb's "
             "SDKs know. Bodies are decoded leniently: unknown members are ignored.",
    .routes = {koyeb_rows, ARRAY_LEN(koyeb_rows)},
    .prefix = "/koyeb-sandbox/",
    .traits = DIALECT_KEEP_ALIVE,
    .lenient = true,
    .refuse = koyeb_refuse,
    .error = koyeb_error,
    .issues = koyeb_issues,
};
