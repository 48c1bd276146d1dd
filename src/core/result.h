/* SPDX-License-Identifier: MIT */
/* What happened: how a run ended, what it wrote, returned and used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Why it ended. Names travel in `termination.reason`. */
enum end_reason {
    END_EXIT,
    END_SIGNAL,
    END_TIMEOUT,
    END_CPU,
    END_OOM,
    END_OUTPUT,
    END_PIDS,
    END_DISK,
    END_POLICY,
    END_CANCELLED,
    END_SHUTDOWN,
    END_FAILED, /* the sandbox itself failed; `error` has the words */
    END_REASON_COUNT,
};

const char *end_reason_name(enum end_reason r);

/* What the kernel says the sandbox used. Unknown numbers are negative. */
struct usage {
    int64_t cpu_us;
    int64_t memory_peak;
    int64_t io_read, io_write;
    int64_t oom_kills, pids_denied;
};

#define USAGE_UNKNOWN                                                                              \
    ((struct usage){.cpu_us = -1,                                                                  \
                    .memory_peak = -1,                                                             \
                    .io_read = -1,                                                                 \
                    .io_write = -1,                                                                \
                    .oom_kills = -1,                                                               \
                    .pids_denied = -1})

/* Monotonic microseconds; 0: has not happened. */
struct stamps {
    uint64_t asked;     /* the request was complete */
    uint64_t started;   /* admitted: a sandbox was taken or asked for */
    uint64_t running;   /* the sandbox had the job */
    uint64_t ended;     /* everything inside was dead */
    uint64_t collected; /* artifacts and usage gathered */
};

/* How long its parts took, in microseconds. */
struct spans {
    uint64_t queue, start, run, collect, total;
};
/* What never ran spent all its time waiting. */
struct spans spans_of(const struct stamps *at);
