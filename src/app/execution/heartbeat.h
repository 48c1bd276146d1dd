/* SPDX-License-Identifier: MIT */
/*
 * Heartbeats: while an execution waits or runs, a control plane hears of it at once and then every
 * HEARTBEAT_INTERVAL, with what the program said of its progress. None is sent afterwards.
 */
#pragma once

#include "core/port_report.h"

struct event;
struct execution;

/* Embedded in an execution. */
struct heart {
    struct event *timer;           /* owned; NULL: does not beat */
    struct report_beat *under_way; /* the adapter's */
};

/* Nothing happens where there is no control plane. */
void heart_start(struct execution *x);
/* Its state has changed: told at once. Fine for one that does not beat. */
void heart_now(struct execution *x);
/* What is under way is given up. Fine for one that does not beat. */
void heart_stop(struct execution *x);
