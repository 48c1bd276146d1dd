/* SPDX-License-Identifier: MIT */
/* What the facts of a run mean for the caller of a function. Pure; may run on a worker. */
#pragma once

#include "base/json.h"
#include "core/limits.h"
#include "core/port_run.h"

enum call_status {
    CALL_SUCCESS,
    CALL_ERROR,
    CALL_CRASH,
    CALL_TIMEOUT,
    CALL_TERMINATED,
    CALL_STATUS_COUNT,
};
const char *call_status_name(enum call_status s);

enum { CALL_EXIT_TIMEOUT = 124, CALL_EXIT_TERMINATED = 143 };

struct call_outcome {
    enum call_status status;
    int exit_code;
    bool framed;             /* the error is the wrapper's own: raw JSON in the run's error frame */
    const char *type;        /* static; of an error that is not framed */
    char message[600];       /* of the same */
    struct json_value stack; /* of the same; p == NULL: none */
    const char *limit;       /* static name of the limit that was met; NULL: none */
    int64_t limit_value;
};

/* What was asked for is wrong. The one place that decides what an error without a name is called.
 */
void call_outcome_fail(struct call_outcome *o, const struct err *e);
/* Did the wrapper say that the program has no such function? */
bool call_outcome_unfound(const struct call_outcome *o, const struct buf *error,
                          struct bytes function);
/* Decides, validates the returned value and the error. */
void call_outcome_reach(const struct run_result *r, const struct limits *l,
                        struct call_outcome *ret);
