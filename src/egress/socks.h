/* SPDX-License-Identifier: MIT */
/* SOCKS 5: the greeting and the request. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/egress_policy.h"

enum { SOCKS_VERSION = 5, SOCKS_MAX = 262 };
enum socks_reply {
    SOCKS_DONE = 0,
    SOCKS_FAILED = 1,
    SOCKS_REFUSED = 2,
    SOCKS_UNREACHABLE = 4,
    SOCKS_COMMAND = 7, /* it is none that we know */
};

/* Bytes of the greeting; 0: more are needed; -1: it is none, or wants a password. */
must_check int socks_greeting(const uint8_t *p, size_t n);

struct socks_request {
    enum egress_host_kind kind;
    char host[EGRESS_NAME_MAX + 1];
    uint32_t v4; /* in network order, if it was said as an address of IPv4 */
    uint16_t port;
    bool connect; /* that is what it wants */
};
must_check int socks_request(const uint8_t *p, size_t n, struct socks_request *ret);

enum { SOCKS_REPLY = 10 };
void socks_reply(enum socks_reply code, uint8_t out[SOCKS_REPLY]);
