/* SPDX-License-Identifier: MIT */
/*
 * The way into a sandbox: a list of steps that a reviewer can recite. It runs
 * in the new pid 1, before that has read anything a tenant wrote. A step that
 * fails is reported by name on the control socket, and the sandbox is no more.
 */
#pragma once

#include "init/steps.h"

enum { SANDBOX_UID = 1000 }; /* as seen inside */

void confine_self(const struct confine *c);

/* One of its steps, of use to others: /workspace, /tmp and what else is private. */
int confine_mounts(const struct confine *c);
