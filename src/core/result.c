/* SPDX-License-Identifier: MIT */
#include "core/result.h"

/* clang-format off */
static const char *const names[] = {
    [END_EXIT]      = "exit",
    [END_SIGNAL]    = "signal",
    [END_TIMEOUT]   = "timeout",
    [END_CPU]       = "cpu",
    [END_OOM]       = "oom",
    [END_OUTPUT]    = "output",
    [END_PIDS]      = "pids",
    [END_DISK]      = "disk",
    [END_POLICY]    = "policy",
    [END_CANCELLED] = "cancelled",
    [END_SHUTDOWN]  = "shutdown",
    [END_FAILED]    = "failed",
};
/* clang-format on */
_Static_assert(ARRAY_LEN(names) == END_REASON_COUNT, "every reason has a name");

const char *end_reason_name(enum end_reason r)
{
    return names[r];
}

/* 0 where one of them was never set. */
static uint64_t between(uint64_t from, uint64_t to)
{
    return from != 0 && to > from ? to - from : 0;
}

struct spans spans_of(const struct stamps *at)
{
    bool ran = at->running != 0 && at->ended != 0;

    return (struct spans){
        .queue = between(at->asked, at->started != 0 ? at->started : at->collected),
        .start = between(at->started, ran ? at->running : at->collected),
        .run = ran ? between(at->running, at->ended) : 0,
        .collect = ran ? between(at->ended, at->collected) : 0,
        .total = between(at->asked, at->collected),
    };
}
