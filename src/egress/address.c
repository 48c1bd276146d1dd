/* SPDX-License-Identifier: MIT */
#include "egress/address.h"

#include <ifaddrs.h>
#include <string.h>

#include "base/clock.h"

enum { AGAIN_US = 1000000 };

/* The registries of special addresses (RFC 6890 and what followed). */
static const char *const special[] = {
    "0.0.0.0/8",         "10.0.0.0/8",     "100.64.0.0/10",   "127.0.0.0/8",     "169.254.0.0/16",
    "172.16.0.0/12",     "192.0.0.0/24",   "192.0.2.0/24",    "192.31.196.0/24", "192.52.193.0/24",
    "192.88.99.0/24",    "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",   "198.51.100.0/24",
    "203.0.113.0/24",    "224.0.0.0/4",    "240.0.0.0/4",     "2001::/23",       "2001:db8::/32",
    "2620:4f:8000::/48", "3fff::/20",      "2002::/16",
};
/* Everything that is global unicast is below it. */
static const char global_six[] = "2000::/3";

static bool is_in(const char *net, const struct sockaddr *a)
{
    struct egress_net n;

    return egress_net_read(net, &n) && egress_net_has(&n, a);
}

static bool is_mapped(const struct sockaddr *a)
{
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

bool address_is_public(const struct sockaddr *a)
{
    if (a->sa_family != AF_INET && a->sa_family != AF_INET6)
        return false;
    if (a->sa_family == AF_INET6 && (is_mapped(a) || !is_in(global_six, a)))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (is_in(special[i], a))
            return false;
    return true;
}

static bool net_of(const struct sockaddr *a, struct egress_net *ret)
{
    *ret = (struct egress_net){0};
    if (a->sa_family == AF_INET) {
        ret->bytes = 4;
        memcpy(ret->address, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
    } else if (a->sa_family == AF_INET6) {
        ret->bytes = 16;
        memcpy(ret->address, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
    }
    ret->bits = (uint8_t)(ret->bytes * 8);
    return ret->bytes > 0;
}

void own_addresses_read(struct own_addresses *o)
{
    struct ifaddrs *list = NULL;
    uint64_t now = clock_us();

    if (o->n > 0 && now - o->read_us < AGAIN_US)
        return;
    if (getifaddrs(&list) < 0)
        return;
    o->n = 0;
    o->read_us = now;
    for (const struct ifaddrs *i = list; i && o->n < OWN_MAX; i = i->ifa_next)
        if (i->ifa_addr && net_of(i->ifa_addr, &o->v[o->n]))
            o->n++;
    freeifaddrs(list);
}

/* Not knowing them is no reason to connect. */
bool own_addresses_have(const struct own_addresses *o, const struct sockaddr *a)
{
    for (size_t i = 0; i < o->n; i++)
        if (egress_net_has(&o->v[i], a))
            return true;
    return o->n == 0;
}
