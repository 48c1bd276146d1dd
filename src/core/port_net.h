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
#include "core/net_ports.h"
#include "core/port_jail.h"

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

/* "none" and "host", as requests and answers have them. */
const char *net_mode_name(enum net_mode m);
/* The mode that a request names. ERR_CALLER: it has no such name; ERR_DENIED: the operator does not
 * permit it. */
must_check int net_permit(const struct config *c, const char *name, enum net_mode *ret,
                          struct err *e);
/* Can a sandbox of this jail have it? */
bool net_possible(const struct jail *j, enum net_mode m);
/* What its programs really reach: a jail without a network of its own gives that of the host. */
enum net_mode net_effective(const struct jail *j, enum net_mode m);
