/* SPDX-License-Identifier: MIT */
/* Port: somebody who wants to hear of executions besides whoever asked (a control plane). */
#pragma once

#include <stddef.h>

struct report; /* one listener */

/* What is told. Borrowed for the length of the call. */
struct report_event {
    const char *execution_id;
    const char *session_id; /* "" when the request had none */
    const char *status;     /* success, failed, timeout, error; NULL while it runs */
    const char *reason;     /* termination reason; NULL while it runs */
    const char *result;     /* the complete ExecutionResult; NULL while it runs */
    size_t result_n;
};

struct report_ops {
    const char *name;
    void (*started)(struct report *r, const struct report_event *e);
    void (*done)(struct report *r, const struct report_event *e);
};

/* Listeners put this first in their own struct. */
struct report {
    const struct report_ops *ops;
};
