/* SPDX-License-Identifier: MIT */
/* The jails there are, and the choice among them. */
#pragma once

#include "core/config.h"
#include "core/port_jail.h"

struct event_base;
struct log;

/*
 * Opens the first jail of config->isolation that this host can run and that gives
 * every trait the configured level asks for. If none does, the error says for
 * each why, and how to fix it. Must be called with the daemon's first privileges
 * and before any socket is open.
 */
must_check int jails_open(const struct config *c, struct event_base *loop, const struct log *log,
                          struct jail **ret, struct err *e);
void jails_close(struct jail *j); /* NULL is fine; kills every sandbox */

/* Row i of the table, or NULL behind the last one. */
const char *jails_name(size_t i);

/* Traits that ISOLATION_LEVEL asks for. */
must_check int jails_required(const char *level, unsigned *ret, struct err *e);

/* ---- adapters ---- */

typedef int jail_open_fn(const struct config *c, struct event_base *loop, const struct log *log,
                         struct jail **ret, struct err *e);
jail_open_fn jail_native_open;
