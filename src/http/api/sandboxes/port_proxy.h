/* SPDX-License-Identifier: MIT */
/*
 * A reverse proxy to a server inside a sandbox: one request, one connection. The request goes in as
 * it came, its body as it arrives; the answer comes out as it arises; after 101 bytes go both ways.
 * Neither side is read faster than the other takes it.
 *
 * What the server inside says was written by a tenant: of its answer only a head of bounded length
 * is looked at, strictly, and the framing is ours again.
 */
#pragma once

#include <stdint.h>

#include "app/sandbox/port.h"
#include "http/server/http_call.h"

struct proxy_order {
    struct persistent *home;
    uint16_t port;
    const char *target; /* path and query, as the server inside is to see them */
    bool our_origin;    /* a browser takes its pages for the daemon's own (show_apart()) */
    /* Answers a call that never reached a server. */
    void (*refuse)(struct http_call *c, const char *id, uint16_t port, enum port_failure why);
};

/* Of a row with ROUTE_BODY_STREAM: the call is answered by it. */
void proxy_call(struct http_call *c, const struct proxy_order *o);
