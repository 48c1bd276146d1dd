/* SPDX-License-Identifier: MIT */
/* The member `packages` of requests that make something: the name of a set, or its lists. */
#pragma once

#include "app/packages/asked.h"
#include "base/json.h"
#include "core/package.h"
#include "http/server/http_call.h"
#include "http/server/route.h"

struct shelf_item;

enum packages_go {
    PACKAGES_GO,    /* none were asked for, or they are held */
    PACKAGES_LATER, /* they are being installed: `again` is called when they are there */
    PACKAGES_REFUSED,
};

/* Holds the packages that a request asks for. LATER: the call must not be touched; when they cannot
 * be installed it is answered. REFUSED: it is answered. */
enum packages_go packages_take(struct http_call *c, struct json_value asked, api_fn *again,
                               struct shelf_item **ret);
