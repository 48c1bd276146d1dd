/* SPDX-License-Identifier: MIT */
/*
 * The only way out of a sandbox that installs packages: a proxy that knows a few hosts.
 *
 *   program ──TCP, its own loopback──▶ relay ──▶ host:port of the list
 *                                        └─▶ 403 for anything else, and refused() is called
 *
 * The listener was made inside the sandbox's network namespace and handed out before anything ran
 * there; the program sees a port and can change nothing about it. Names are resolved once, before,
 * outside; the program never resolves any. What goes through a tunnel is not looked at.
 *
 *   HEAD ──allowed──▶ DIALLING ──▶ FLOWING ──an end──▶ LINGERING ──▶ closed
 *    └──anything else, refused by the host─────────────────▲
 *
 * All bytes together are bounded, and so are connections, heads and silence.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/package.h"

struct event_base;
struct relay;

enum {
    RELAY_HOSTS_MAX = 33, /* the index and 32 others */
    RELAY_ADDRESSES_MAX = 8,
    RELAY_CONNECTIONS_MAX = 64,
};

/* One host that may be reached. */
struct relay_host {
    struct package_host host; /* port: never 0 */
    struct sockaddr_storage address[RELAY_ADDRESSES_MAX];
    socklen_t address_n[RELAY_ADDRESSES_MAX];
    size_t n;       /* 0: its name leads nowhere */
    char error[96]; /* then: why */
};

/* Looks the name up. Blocks: for a worker. */
void relay_host_resolve(struct relay_host *h);

/* Somebody asked for another host: words for a log, never more than a few hundred bytes. */
typedef void relay_refused_fn(void *user, const char *target);
/* More bytes than allowed have passed. Nothing passes any more. Once. */
typedef void relay_full_fn(void *user);

struct relay_conf {
    struct event_base *base;        /* borrowed */
    const struct relay_host *hosts; /* borrowed as long as the relay lives */
    size_t hosts_n;
    uint64_t bytes_max;
    relay_refused_fn *refused;
    relay_full_fn *full;
    void *user;
};

/* The listener is taken, also on failure. */
must_check int relay_open(const struct relay_conf *conf, int listener, struct relay **ret,
                          struct err *e);
/* Ends every connection. Not from inside a callback. NULL is fine. */
void relay_close(struct relay *r);
uint64_t relay_bytes(const struct relay *r); /* in both directions */
