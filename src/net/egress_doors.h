/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of sandbox-egress (egress/PROCESSES): doors are opened, told of listeners and of
 * other policies, and asked whom they let through. No byte of a tenant or of a host comes here.
 *
 * A door that dies is replaced with the same policy and the same listeners; its connections are
 * lost. If the program itself is lost for good, every further door is refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/egress_policy.h"
#include "wire/egress_words.h"

struct event_base;
struct log;
struct egress;
struct egress_door;

/* Starts the program, as whom we are. `hosts`: a file like /etc/hosts that it asks first, or "". */
must_check int egress_start(const char *directory, const char *hosts, struct egress **ret,
                            struct err *e);
/* Serves from now on; at most so many doors. */
must_check int egress_open(struct egress *g, struct event_base *base, const struct log *log,
                           size_t doors_max, struct err *e);
void egress_close(struct egress *g); /* NULL is fine; closes all doors */
size_t egress_doors(const struct egress *g);

/* The first connection with that host, port and verdict. From the loop. */
typedef void egress_row_fn(void *user, const struct egress_row *row);
typedef void egress_fn(void *user);

/* ERR_BUSY: there are too many; ERR_HOST: there can be none. `row` may be NULL. */
must_check int egress_door_open(struct egress *g, const struct egress_policy *p, egress_row_fn *row,
                                void *user, struct egress_door **ret, struct err *e);
/* A listener of the sandbox, which is taken. `port`: core/net_ports.h. */
void egress_door_serve(struct egress_door *d, uint32_t port, int fd);
/* fn comes once nothing is allowed by the older policy any more; never from inside. */
void egress_door_change(struct egress_door *d, const struct egress_policy *p, egress_fn *fn,
                        void *user);
/* fn comes when egress_door_rows() is up to date; never from inside, but maybe from inside
 * egress_close(). One at a time. */
void egress_door_ask(struct egress_door *d, egress_fn *fn, void *user);
const struct egress_row *egress_door_rows(const struct egress_door *d, size_t *ret_n,
                                          uint32_t *ret_left_out);
uint64_t egress_door_bytes(const struct egress_door *d); /* both directions, a moment ago */
const struct egress_policy *egress_door_policy(const struct egress_door *d);
void egress_door_close(struct egress_door *d); /* NULL is fine; its connections end */
