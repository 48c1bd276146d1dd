/* SPDX-License-Identifier: MIT */
/*
 * Port: what a sandbox may reach.
 *
 * This file decides which network a sandbox gets: what the operator permits (net_permit()), what a
 * jail can do (net_possible()) and what a program finds in the end (net_effective()). Jails, pools,
 * keepers and init know no policy. They have two mechanisms:
 *
 *   namespace   a sandbox is born in one with nothing but a loopback, or stays in the host's
 *   listener    pid 1 opens a port of that loopback when it is told to (INIT_LISTEN) and hands the
 *               listening socket to the daemon. No process inside holds it
 *
 * A gate is what serves such listeners outside. A run with a gate asks for them first and sends the
 * job, and with it the program, only when the gate has them all; so a sandbox that was made ahead
 * can have a gate, and a run without one does nothing for it. The gates that there are hand the
 * listeners to a door of their own (net/egress_doors.h), which has a policy (core/egress_policy.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/config.h"
#include "core/egress_policy.h"
#include "core/exec_spec.h"
#include "core/net_ports.h"
#include "core/port_jail.h"
#include "core/shape.h"

enum net_mode {
    NET_NONE, /* the sandbox's own loopback */
    NET_GATE, /* that, and what a gate lets through */
    NET_HOST, /* the network of the host with its loopback */
};

struct net_gate {
    const uint32_t *ports; /* of the loopback (net_ports.h); borrowed as long as the run lives */
    size_t ports_n;
    /* The listener of one of them, before the program has its job. Taken. */
    void (*listening)(void *user, uint32_t port, int fd);
    void *user;
};

/* "none", "host", "allow" and "public", as requests and answers have them. */
const char *net_mode_name(enum net_mode m, const struct egress_policy *p);

/* What a request asks for. */
struct net_wish {
    enum net_mode mode;
    struct egress_policy *policy; /* owned; of NET_GATE alone */
};
void net_wish_done(struct net_wish *w);

/* The member `network` of a request, for all families of the API: the name of a mode, or an object;
 * without a value none. ERR_CALLER: it is malformed; ERR_DENIED: the operator does not permit it.
 */
must_check int net_decode(const struct config *c, struct json_value v, struct net_wish *ret,
                          struct err *e);
/* The same from what another API says: public, or only these hosts; `deny` in the former. */
must_check int net_wish_hosts(const struct config *c, enum egress_mode mode,
                              const struct exec_var *hosts, size_t n, struct net_wish *ret,
                              struct err *e);
/* Are the options about networks good? */
must_check int net_check_config(const struct config *c, struct err *e);
extern const struct shape network_shape;
#define NETWORK_SCHEMA                                                                             \
    "{\"anyOf\":[{\"type\":\"string\",\"enum\":[\"none\",\"public\",\"host\"]},"                   \
    "{\"$ref\":\"#/components/schemas/Network\"}]}"
#define NETWORK_HELP                                                                               \
    "what its programs may reach: none, or by the rules of a Network as far as EGRESS permits; "   \
    "host only for sandboxes, where ALLOW_HOST_NETWORK is true"

/* Variables that make programs use the proxy, unless `given` has them already. Returns how many. */
enum { NET_VARS_MAX = 10 };
size_t net_vars(const struct exec_var *given, size_t given_n, struct exec_var out[NET_VARS_MAX]);

/* The listeners that a policy needs. Returns how many. */
enum { NET_PORTS_MAX = EGRESS_PORTS_MAX + 4 };
size_t net_ports(const struct egress_policy *p, uint32_t out[NET_PORTS_MAX]);

/* Can a sandbox of this jail have it? */
bool net_possible(const struct jail *j, enum net_mode m);
/* What its programs really reach: a jail without a network of its own gives that of the host. */
enum net_mode net_effective(const struct jail *j, enum net_mode m);
