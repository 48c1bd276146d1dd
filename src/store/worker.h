/* SPDX-License-Identifier: MIT */
/* A few threads for work that would block the loop: the implementation of core/port_work.h. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"
#include "core/port_work.h"

struct event_base;

enum { WORK_THREADS = 2 };

/* The threads inherit the signal mask: block what the loop wants to see first. */
must_check int work_pool_open(struct event_base *base, struct work_pool **ret, struct err *e);
/* Finishes everything submitted, delivers it and ends the threads. NULL is fine. */
void work_pool_close(struct work_pool *p);
