/* SPDX-License-Identifier: MIT */
/* Members that the results of all dialects of executions have in common, as JSON. Pure. */
#pragma once

#include "base/jw.h"
#include "core/port_run.h"
#include "core/result.h"

/* stdout, stderr, exit_code, execution_time, return_value; `returned`: the value counts. */
void result_write_output(struct jw *w, const struct run_result *r, bool returned);
/* "metrics": time, memory, bytes */
void result_write_metrics(struct jw *w, const struct run_result *r);
