/* SPDX-License-Identifier: MIT */
/*
 * Pid 1 of a persistent sandbox: it hires workers (worker.h), fires them, and
 * reaps. Everything the tenant starts is below a worker, which is its reaper; so
 * whatever else becomes a child of pid 1 has lost its worker and is killed, with
 * all that is below it. It reads fixed messages of the daemon and nothing else.
 */
#pragma once

#include "init/init.h"

__attribute__((noreturn)) void foreman_run(const struct init *conf);
