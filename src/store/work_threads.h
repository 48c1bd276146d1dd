/* SPDX-License-Identifier: MIT */
/*
 * Threads for work that would block the loop: the implementation of core/port_work.h.
 *
 * As many as there are processors, at least 4. One of them is always free for short work; the rest
 * take short work first and then long work, one piece of each owner after another. Names are
 * resolved by one more thread.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "core/port_work.h"

struct event_base;

enum {
    WORK_THREADS_MIN = 4,
    WORK_THREADS_MAX = 64,
    WORK_SHORT_ROW = 32, /* pieces of short work in a row while long work waits */
};

/* The threads inherit the signal mask: block what the loop wants to see first. */
must_check int work_pool_open(struct event_base *base, struct work_pool **ret, struct err *e);
size_t work_pool_threads(const struct work_pool *p); /* for short and long work */
/* Finishes everything submitted, delivers it and ends the threads. NULL is fine. */
void work_pool_close(struct work_pool *p);
