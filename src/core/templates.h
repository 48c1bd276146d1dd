/* SPDX-License-Identifier: MIT */
/* What the daemon knows of each template (plan.h): one row. */
#pragma once

#include <stddef.h>

#include "core/plan.h"

struct template
{
    const char *name;   /* in results, metrics and logs */
    unsigned megabytes; /* about what a prepared sandbox takes, kernel memory included */
    size_t pool;        /* where in struct config the least size of its pool is */
};

extern const struct template templates[TEMPLATE_COUNT];
