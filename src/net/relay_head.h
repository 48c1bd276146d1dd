/* SPDX-License-Identifier: MIT */
/*
 * What a program asks of a relay: the head of one HTTP request to a proxy. Pure.
 *
 *   CONNECT host:port HTTP/1.1         bytes both ways; what they are is not our business
 *   GET http://host[:port]/path HTTP/1.1   one request, passed on as  GET /path  with our own Host
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "core/package.h"

enum { RELAY_HEAD_MAX = 16384 };

struct relay_request {
    struct package_host host;  /* port: never 0 */
    bool tunnel;               /* CONNECT */
    size_t head_n;             /* bytes of the head, with its empty line */
    const char *method, *path; /* into the text; not for a tunnel */
    size_t method_n, path_n;
    const char *fields; /* the first line behind the request line */
    size_t fields_n;    /* up to and without the empty line */
};

/* 1: *ret is filled; 0: the head is not complete yet; -1: this is no such request. */
must_check int relay_request_parse(const char *p, size_t n, struct relay_request *ret);
/* The head as the host is to see it: the path alone, the host that was looked at, no body, and the
 * connection ends with the answer. */
void relay_request_write(const struct relay_request *r, struct buf *out);
