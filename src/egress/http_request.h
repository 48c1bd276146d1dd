/* SPDX-License-Identifier: MIT */
/*
 * What a program asks by HTTP: a tunnel, or one plain request, which is written anew for the host.
 * Pure. The strict parser is that of our own server (http/server/h1.h).
 *
 *   CONNECT host:port           bytes both ways
 *   GET http://host[:port]/x    a request to a proxy
 *   GET /x, Host: host[:port]   a request to the host itself, as the program believes
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "core/egress_policy.h"
#include "http/server/h1.h"

struct request {
    struct h1_head head; /* points into the text */
    bool tunnel;
    bool absolute; /* host and port come from the target */
    bool upgrades; /* to WebSocket */
    char host[EGRESS_NAME_MAX + 1];
    uint16_t port;      /* 0: the request names none */
    const char *target; /* path and query as they came */
    char path[EGRESS_PATH_MAX + 1];
    bool clean; /* path is filled */
};

/* The head text[0..n), which is complete, is cut up in place. EGRESS_ALLOWED: *ret is filled; else
 * what is wrong with it. */
must_check enum egress_verdict request_read(char *text, size_t n, struct request *ret);
/* The head for the host: fields between two hops are gone, the connection ends with the answer. */
void request_write(const struct request *r, const char *host, uint16_t port, bool clean,
                   struct buf *out);
