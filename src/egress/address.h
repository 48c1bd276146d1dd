/* SPDX-License-Identifier: MIT */
/* Which addresses a sandbox may be connected to. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "core/egress_policy.h"

/* Global unicast: in no registry of special addresses, nor one of IPv4 inside one that is. Pure. */
bool address_is_public(const struct sockaddr *a);

/* Addresses of this host's own interfaces, looked up again when they may have changed. */
enum { OWN_MAX = 256 };
struct own_addresses {
    struct egress_net v[OWN_MAX];
    size_t n;
    uint64_t read_us;
};
void own_addresses_read(struct own_addresses *o);
bool own_addresses_have(const struct own_addresses *o, const struct sockaddr *a);
