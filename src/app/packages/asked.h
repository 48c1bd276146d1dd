/* SPDX-License-Identifier: MIT */
/* The member `packages` of a request: the name of a set of packages, or its lists. */
#pragma once

#include "app/packages/sets.h"
#include "base/json.h"
#include "core/shape.h"

struct package_lists {
    struct shape_strings python, npm;
};

/* The fields of both lists, where a body has them. */
/* clang-format off */
#define PACKAGE_LISTS_FIELDS(offset) \
    {"python", SHAPE_LIST, 0, (offset) + offsetof(struct package_lists, python), 0, DEPENDENCIES_MAX, NULL, \
     "requirements as in PEP 508: requests, numpy>=1.26"}, \
    {"npm", SHAPE_LIST, 0, (offset) + offsetof(struct package_lists, npm), 0, DEPENDENCIES_MAX, NULL, \
     "names of npm, with or without a version: lodash, @scope/name@^1.0"}
/* clang-format on */

/* The set that is asked for, its installation begun if it is needed. ERR_CALLER, ERR_ABSENT,
 * ERR_DENIED, ERR_BUSY, ERR_HOST. */
must_check int package_set_asked(struct app *a, struct json_value asked, const char *request_id,
                                 struct package_set **ret, struct err *e);
