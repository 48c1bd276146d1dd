/* SPDX-License-Identifier: MIT */
/*
 * A port of a persistent sandbox made reachable: one at a time, through a TCP proxy
 * that dials inside the sandbox for every connection. The default sandbox has the
 * proxy on PROXY_PORT for as long as the daemon lives; any other gets one of its own
 * while a port is bound.
 */
#pragma once

#include <stdint.h>

#include "app/sandbox/sandboxes.h"

struct app;
struct expose;
struct proxy;

/* The proxy of the default sandbox. */
must_check int expose_open(struct app *a, struct expose **ret, struct err *e);
void expose_close(struct expose *x); /* NULL is fine */
uint16_t expose_port(const struct expose *x);

/* 0, or -1 when a port is bound already (ERR_CALLER) or the proxy cannot be had. Any string will
 * do; one that is no port fails when somebody connects. */
must_check int expose_bind(struct persistent *p, const char *port, struct err *e);
void expose_unbind(struct persistent *p);             /* new connections only: the others go on */
uint16_t expose_own_port(const struct persistent *p); /* of its own proxy; 0: none */
void expose_done(struct persistent *p);               /* for sandboxes.c: it ends */
