/* SPDX-License-Identifier: MIT */
/* The walls of each process of sandbox-egress. For good; a process that could not be locked ends.
 */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

enum lock_role { LOCK_MASTER = BIT(0), LOCK_DOOR = BIT(1) };

/* Calls of that role in lock.def, and no others: any other one ends the process. */
must_check int lock_calls(enum lock_role role, struct err *e);
/* Names are looked up: read what the resolver needs, write nothing, execute nothing. */
must_check int lock_dialler(struct err *e);
