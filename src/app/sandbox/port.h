/* SPDX-License-Identifier: MIT */
/*
 * A connection to a port inside a sandbox: dialled by a helper in there, to the sandbox's own
 * loopback, and handed out as a socket.
 *
 *   port_dial() ──▶ opened() ──▶ data() … ──▶ ended()
 *        └────────▶ failed()
 *
 * It is an activity of the sandbox: one with an open connection is not idle. What is written waits
 * in memory if the program inside does not take it: the writer stops above PORT_HIGH.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/sandbox/sandboxes.h"
#include "base/err.h"

enum { PORT_HIGH = 64 * 1024 };

enum port_failure {
    PORT_CLOSED, /* nothing listens there */
    PORT_GONE,   /* the sandbox has ended */
    PORT_BUSY,   /* it has no place for another request */
    PORT_FAILED, /* no memory, or the connection broke */
};

/* Called from the loop, never from inside a port_*() function. */
struct port_events {
    void (*opened)(void *user);
    void (*failed)(void *user, enum port_failure why); /* nothing follows; close it */
    /* Bytes from inside. False: no more until port_resume(). */
    bool (*data)(void *user, const char *p, size_t n);
    void (*ended)(void *user); /* the program closed its side, or the connection broke; close it */
    void (*drained)(void *user); /* what waited has gone in */
};

struct port;

/* -1: it cannot even be tried. */
must_check int port_dial(struct persistent *p, uint16_t number, const struct port_events *on,
                         void *user, struct port **ret, struct err *e);
/* Bytes that wait after this. */
size_t port_write(struct port *c, const void *p, size_t n);
/* Nothing more will be written. */
void port_write_end(struct port *c);
void port_resume(struct port *c);
/* Also from inside an event. NULL is fine. */
void port_close(struct port *c);
