/* SPDX-License-Identifier: MIT */
/*
 * Where webhooks may go: WEBHOOK_HOSTS. Pure.
 *
 * A row is a host ("hooks.example.com"), all hosts below a domain ("*.example.com"), any host
 * ("*"), an address ("192.0.2.7", "[2001:db8::1]") or a network ("10.0.0.0/8"). ":8443" behind it
 * names a port, ":*" any; without one only the ports 80 and 443 are meant.
 *
 * A name is checked when it is asked for, and the address that it stands for when a connection is
 * about to be made: a name may stand for another address by then.
 *
 *   address                                    may be connected to
 *   public                                     by every host that a row names
 *   loopback, private                          by a host that is named in full, or if a row has it
 *   link-local, metadata, multicast, reserved  only if a row has the address, or a network with it
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "net/http_url.h"

enum { WEBHOOK_RULES_MAX = 64 };

enum webhook_reach {
    WEBHOOK_NOWHERE, /* no row has it */
    WEBHOOK_PUBLIC,  /* a pattern has */
    WEBHOOK_PRIVATE, /* it is named in full */
};

struct webhook_rule {
    bool below;               /* the domain in `name`; "" is any host */
    char name[HTTP_HOST_MAX]; /* "": a network, unless `below` */
    struct in6_addr network;  /* of IPv4: mapped */
    unsigned bits;
    bool any_port;
    uint16_t port; /* 0: 80 and 443 */
};

struct webhook_rules {
    struct webhook_rule v[WEBHOOK_RULES_MAX];
    size_t n;
};

must_check int webhook_rules_parse(const char *text, struct webhook_rules *ret, struct err *e);
enum webhook_reach webhook_rules_host(const struct webhook_rules *r, const char *host,
                                      uint16_t port);
struct sockaddr;
/* May a host of that reach be there? */
bool webhook_rules_address(const struct webhook_rules *r, enum webhook_reach reach,
                           const struct sockaddr *to);
/* The same of a host that is an address; true of every other one. */
bool webhook_rules_literal(const struct webhook_rules *r, enum webhook_reach reach,
                           const char *host, uint16_t port);
