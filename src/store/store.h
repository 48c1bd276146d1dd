/* SPDX-License-Identifier: MIT */
/* Copies of artifacts on disk: the implementation of core/port_store.h. */
#pragma once

#include "core/port_store.h"
#include "core/port_work.h"

/* `state` is the private state directory; it must exist. The pool is borrowed. */
must_check int store_open(const char *state, struct work_pool *pool, struct store **ret,
                          struct err *e);
/* Copies stay. NULL is fine. */
void store_close(struct store *s);
