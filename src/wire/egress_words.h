/* SPDX-License-Identifier: MIT */
/* What the daemon and the processes of sandbox-egress say to each other (egress/PROCESSES). */
#pragma once

#include <stdint.h>

#include "core/egress_policy.h"

enum egress_verb {
    /* daemon to master, which passes them on */
    EGRESS_OPEN = 1, /* a door `id` with a policy; fd: its end of a channel */
    EGRESS_CHANGE,   /* door `id` has another policy from now on */
    /* master to daemon */
    EGRESS_HELLO,  /* once, and again after a restart: every door from before is gone */
    EGRESS_FAILED, /* there is no door `id`; its channel has been closed */

    /* daemon to door */
    EGRESS_SERVE, /* fd: the listener of `port` (core/net_ports.h) */
    EGRESS_ASK,   /* TOLD follows when every row that has changed has been sent */
    EGRESS_SET,   /* policy `id`; SET_DONE follows when door and dialler know it */
    /* door to daemon */
    EGRESS_ROW,
    EGRESS_TOLD,
    EGRESS_SET_DONE, /* no connection is made by an older policy any more */

    /* door to dialler and back */
    EGRESS_DIAL,    /* `id`, host, port */
    EGRESS_DIALLED, /* `id`, verdict; fd: a connected socket, if it is EGRESS_ALLOWED */
    EGRESS_CHANGED, /* the dialler has policy `id` */
};

enum {
    EGRESS_ROWS_MAX = 64, /* hosts that one door tells apart */
};

/* To the master and from it to dialler and doors; a reader that expects no policy reads the head.
 */
struct egress_order {
    uint32_t verb, id;
    uint32_t serial; /* of the policy */
    struct egress_policy policy;
};

/* One host, port and verdict, and what there was of it so far. */
struct egress_row {
    char host[EGRESS_NAME_MAX + 1];
    uint16_t port;
    uint16_t verdict; /* enum egress_verdict */
    uint32_t connections, requests;
    uint64_t up, down; /* bytes */
};

/* On the channel of a door, both ways. */
struct egress_word {
    uint32_t verb;
    uint32_t port; /* SERVE */
    uint32_t serial;
    uint32_t index;    /* ROW: which of them */
    uint32_t left_out; /* ROW, TOLD: connections that found no row */
    uint32_t live;     /* connections that there are */
    uint64_t bytes;    /* in both directions */
    struct egress_row row;
};

/* Between a door and the dialler. */
struct egress_dial {
    uint32_t verb, id;
    uint16_t port, verdict;
    char host[EGRESS_NAME_MAX + 1];
};
