/* SPDX-License-Identifier: MIT */
/* Sets of packages: the rows of the family. */
#include "http/api/api.h"
#include "http/api/problem.h"

/* clang-format off */
static const struct route packages_rows[] = {
    {"POST",   "/v1/packages",   api_packages_create, ROUTE_AUTH | ROUTE_BODY, "packages",
     "install a set of Python and npm packages, or find it installed; with Prefer: respond-async the answer is 202 at once",
     NULL, &packages_shape,
     .example = "{\"name\": \"tools\", \"python\": [\"requests\"]}",
     .answer = {{201, "PackageSet"}, {200, "PackageSet"}, {202, "PackageSet"}}},
    {"GET",    "/v1/packages",   api_packages_list,   ROUTE_AUTH, "packages",
     "the sets of packages there are",
     .answer = {{200, "PackageSets"}}},
    {"GET",    "/v1/packages/*", api_packages_get,    ROUTE_AUTH, "packages",
     "a set of packages by its name or id, and how far its installation is",
     .answer = {{200, "PackageSet"}}},
    {"DELETE", "/v1/packages/*", api_packages_delete, ROUTE_AUTH, "packages",
     "remove a set of packages that is not in use",
     .answer = {{204}}},
};
/* clang-format on */

const struct dialect packages_dialect = {
    .name = "packages",
    .title = "Packages",
    .about = "Sets of Python and npm packages, installed once, for executions and sandboxes.",
    API_OURS(packages_rows),
};
