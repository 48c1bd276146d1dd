/* SPDX-License-Identifier: MIT */
/* Restartable sequences: how the C library knows on which processor a thread runs. */
#pragma once

#include <pthread.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel forgets this registration when it clones with shared memory. */
static inline void rseq_register(void)
{
    struct rseq *r = (struct rseq *)((char *)pthread_self() + __rseq_offset);

    if (__rseq_size == 0)
        return;
    r->cpu_id = (uint32_t)RSEQ_CPU_ID_UNINITIALIZED;
    r->rseq_cs = 0;
    if (syscall(SYS_rseq, r, 32 /* its size */, 0, RSEQ_SIG) < 0)
        r->cpu_id = (uint32_t)RSEQ_CPU_ID_REGISTRATION_FAILED;
}
