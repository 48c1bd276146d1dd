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
