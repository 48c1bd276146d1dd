/* SPDX-License-Identifier: MIT */
/* Processors of Linux; elsewhere nobody looks into it. */
#pragma once

#include <sched.h>

struct cpus {
    cpu_set_t set;
};
