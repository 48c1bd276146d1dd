/* SPDX-License-Identifier: MIT */
/* Addresses that requests are sent to, as libcurl reads them: what is checked is what is used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { HTTP_HOST_MAX = 254, HTTP_URL_MAX = 2048 }; /* with NUL */

/*
 * May we send requests below this address? http or https, a host, no user and password, no query
 * or fragment. ERR_CALLER says why not; the address itself is not quoted, for it may hold a secret.
 */
must_check int http_url_check(const char *url, struct err *e);

struct http_url {
    bool tls;
    char host[HTTP_HOST_MAX]; /* lower case; an IPv6 address without brackets; numbers are written
                                 as an address */
    uint16_t port;
    char url[HTTP_URL_MAX]; /* all of it, as libcurl writes it */
};

/* The parts of an address that may have a query, and no user, password or fragment. ERR_CALLER as
 * above. */
must_check int http_url_parse(const char *url, struct http_url *ret, struct err *e);
