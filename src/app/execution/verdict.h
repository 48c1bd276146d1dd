/* SPDX-License-Identifier: MIT */
/*
 * What the facts of a run mean to a caller: status, last words on stderr, the limit that was
 * met. Pure; may run on a worker, for a returned value can be large.
 */
#pragma once

#include <stdint.h>

#include "core/denial.h"
#include "core/limits.h"
#include "core/port_run.h"

enum exec_status { STATUS_SUCCESS, STATUS_FAILED, STATUS_TIMEOUT, STATUS_ERROR, STATUS_COUNT };
const char *exec_status_name(enum exec_status s);

struct verdict {
    enum exec_status status;
    const char *limit;             /* static name of the limit that was met; NULL: none */
    int64_t limit_value, observed; /* observed < 0: unknown */
    const char *hint;              /* static; NULL: none */
    unsigned denied;               /* BIT(enum denial): what it was refused */
};

/*
 * Decides, validates the returned value and the error (invalid ones are dropped) and appends what
 * must be said on stderr. Once per result.
 */
void verdict_reach(struct run_result *r, const struct limits *l, struct verdict *ret);
