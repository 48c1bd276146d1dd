/* SPDX-License-Identifier: MIT */
/*
 * No walls: programs are processes of this host, for a host that is a sandbox itself. Limits, a
 * clean environment, a directory of their own and a complete end they have all the same
 * (walls/plain.h). Chosen only by name, and declared without a trait of isolation.
 */
#include "jail/launched.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

static const struct jail_ops ops = LAUNCHED_OPS("subprocess");

int jail_subprocess_open(const struct jail_conf *c, struct jail **ret, struct err *e)
{
    return launched_open(&(struct launched_kind){&ops, SBX_VERSION, false}, c, ret, e);
}
