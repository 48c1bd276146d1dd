/* SPDX-License-Identifier: MIT */
/* The jails there are, and the choice among them. docs/jails.md tells how to add one. */
#pragma once

#include <sys/types.h>

#include "core/config.h"
#include "core/port_jail.h"

struct event_base;
struct log;

/* What every adapter is given. */
struct jail_conf {
    const struct config *config; /* borrowed, as is the rest */
    struct event_base *loop;
    const struct log *log;
    uid_t user; /* what the daemon will become */
    gid_t group;
    bool standby; /* another one is the default: nothing is made ahead */
};

/*
 * Opens every jail that config->isolation names and that this host can run with every trait the
 * configured level asks for. *ret gets a row for each jail there is, *ret_first the index of the
 * default, the first usable one named. If there is none, the error says for each why, and how to
 * fix it. Must be called with the daemon's first privileges and before any socket is open.
 */
must_check int jails_open(const struct jail_conf *c, struct jail_option ret[JAILS_MAX],
                          size_t *ret_first, struct err *e);
void jails_close(struct jail_option all[JAILS_MAX]); /* kills every sandbox */

/* Row i of the table, or NULL behind the last one. */
const char *jails_name(size_t i);

/* Does ISOLATION name jails that there are, and ISOLATION_LEVEL a level? The host is not asked. */
must_check int jails_check(const struct config *c, struct err *e);

/* Traits that ISOLATION_LEVEL asks for. */
must_check int jails_required(const char *level, unsigned *ret, struct err *e);

/* ---- adapters ---- */

typedef int jail_open_fn(const struct jail_conf *c, struct jail **ret, struct err *e);
jail_open_fn jail_native_open;
jail_open_fn jail_bwrap_open;
jail_open_fn jail_subprocess_open;
