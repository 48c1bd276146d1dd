/* SPDX-License-Identifier: MIT */
/*
 * Pid 1 of a persistent sandbox. It starts helpers (helper.h), kills one when it is told to, and
 * reaps. Everything the tenant starts is below a helper, which is its reaper. So
 * any other process that becomes a child of pid 1 has lost its helper: it is killed with everything
 * below it. Pid 1 reads fixed messages of the daemon and nothing else.
 */
#pragma once

#include "init/init.h"

__attribute__((noreturn)) void helpers_run(const struct init *conf);
