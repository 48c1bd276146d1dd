/* SPDX-License-Identifier: MIT */
/*
 * Does a request come from a web page of another site? Asked only while no secret protects the
 * API: a page in a browser on the same machine or network could otherwise call it.
 */
#pragma once

#include <stdbool.h>

struct origin_facts {
    const char *host, *origin, *fetch_site, *content_type; /* headers; NULL: not there */
    bool json; /* the request has a body that must be JSON */
};

/*
 * NULL, or why the request is refused, in words. `allowed` are more host names, separated by
 * commas; "*" is any. Without a `Host` (HTTP/1.0) there is no browser.
 */
const char *origin_refuse(const struct origin_facts *f, const char *allowed);

/* Is the name in "name", "name:port" or "[v6]:port" on the list? */
bool origin_host_is_listed(const char *host, const char *list);

/* May a page of this origin (NULL: no page asks) open a WebSocket at `host`? */
bool origin_is_ours(const char *origin, const char *host, const char *allowed);
