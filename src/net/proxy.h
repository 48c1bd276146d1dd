/* SPDX-License-Identifier: MIT */
/*
 * A TCP proxy: an accepted connection is joined to a socket that a callback dials.
 *
 *   accept ──▶ dial ──▶ joined ──both directions ended──▶ closed
 *     └─nothing bound─▶ a byte, the end, or a moment ──▶ closed
 *
 * Bytes go from socket to socket through a pipe in the kernel and are never copied
 * here. Each direction ends by itself: the end of one side's writing is passed on,
 * and the other side may still answer. What cannot be written is not read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct event_base;
struct proxy;
struct proxy_conn;

enum proxy_dial {
    PROXY_DIALLING, /* proxy_joined() comes later, exactly once */
    PROXY_UNBOUND,  /* there is nothing to connect to: checks of the port itself succeed */
    PROXY_REFUSED,  /* close it */
};

/* Asked for every connection. */
typedef enum proxy_dial proxy_dial_fn(void *user, struct proxy_conn *c);

struct proxy_conf {
    struct event_base *base; /* borrowed */
    const char *host;        /* "", "*" or "::": every address, IPv4 and IPv6 */
    uint16_t port;           /* 0: the kernel chooses */
    uint32_t connections_max;
    proxy_dial_fn *dial;
    void *user;
};

must_check int proxy_open(const struct proxy_conf *conf, struct proxy **ret, struct err *e);
/* Closes every connection. proxy_joined() must not be called afterwards. NULL is fine. */
void proxy_close(struct proxy *p);
uint16_t proxy_port(const struct proxy *p);

/* The answer to a dial: a connected, non-blocking socket, which is taken, or -1. */
void proxy_joined(struct proxy_conn *c, int fd);
