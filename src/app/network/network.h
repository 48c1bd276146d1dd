/* SPDX-License-Identifier: MIT */
/*
 * The network of one sandbox that has one: its door, the listeners that init opens for it, and the
 * account of what was reached.
 *
 *   network_open ─▶ network_gate: listeners ─▶ the program runs ─▶ network_settle ─▶ network_json
 *                                                 └─ network_change
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/jw.h"
#include "core/port_net.h"

struct app;
struct network;

typedef void network_fn(void *user);

/* `owner`: of whom a log speaks. ERR_CALLER: this jail has no network of its own; ERR_BUSY. */
must_check int network_open(struct app *a, const struct jail *j, const struct egress_policy *p,
                            const char *owner, struct network **ret, struct err *e);
void network_free(struct network *n); /* NULL is fine; no callback comes any more */
/* The listeners that it needs; lives as long as the network. */
const struct net_gate *network_gate(const struct network *n);
/* Brings the account up to date, closes the door, keeps the account. */
void network_settle(struct network *n, network_fn *fn, void *user);
/* Another policy; fn comes when nothing is allowed by the older one any more. Ports that were not
 * served before are in network_gate() afterwards, from index *ret_first on. */
void network_change(struct network *n, const struct egress_policy *p, size_t *ret_first,
                    network_fn *fn, void *user);
/* One is under way. */
bool network_changing(const struct network *n);
/* fn does not come any more. */
void network_leave(struct network *n);
const struct egress_policy *network_policy(const struct network *n); /* NULL: settled */

/* "network": [...] with one row for each host, port and verdict; a refusal has advice. */
void network_json(struct jw *w, const struct network *n);
/* Bytes of JSON that this may take. */
enum { NETWORK_JSON_MAX = EGRESS_PORTS_MAX * 16 + 64 * 1400 };
/* Members "mode", "allow" or "deny", "ports", "transparent" and "bytes_max" of an open object. */
void network_policy_json(struct jw *w, const struct egress_policy *p);
