/* SPDX-License-Identifier: MIT */
/* Every limit of one sandbox and one run. 0 means "no limit" only where it says so. */
#pragma once

#include <stdint.h>

struct limits {
    uint64_t wall_ms;    /* from the moment the program may start; killed afterwards; 0: no limit */
    uint64_t cpu_ms;     /* CPU time of everything inside; 0: no limit */
    uint64_t memory_max; /* bytes, files in tmpfs included */
    uint64_t workspace_max;   /* bytes in /workspace */
    uint64_t workspace_files; /* inodes in /workspace */
    uint64_t tmp_max;         /* bytes in /tmp, and the same again in /dev/shm */
    uint64_t output_max;      /* bytes kept of each of stdout and stderr */
    uint64_t result_max;      /* bytes of the returned value */
    uint32_t pids_max;        /* processes and threads */
    uint32_t files_max;       /* open descriptors of one process */
};
