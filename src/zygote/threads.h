/* SPDX-License-Identifier: MIT */
/*
 * Helper threads that survive a fork.
 *
 * A fork copies one thread. An interpreter that started others before (V8's
 * compilers and collectors, a scheduler of delayed tasks) waits for them for
 * ever in the copy. So before forking every helper is interrupted by a signal
 * where it idles, in futex(2) or epoll_wait(2), and stays in that handler: it
 * can hold no lock of malloc or the heap there. In the copy each helper is
 * cloned again with its old stack, registers and thread-local storage; it
 * returns from the handler and goes on waiting as if nothing had been.
 *
 * The copy must be made by the bare system call: the C library's fork() would
 * hand the stacks of the vanished threads to the next ones it starts.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { THREADS_MAX = 32 };

struct thread_frame {
    uint64_t rip, rsp, rbx, rbp, r12, r13, r14, r15;
};

struct thread {
    struct thread_frame frame;
    char *self; /* the C library's control block, which is the thread pointer as well */
    int tid;
    int state; /* a futex */
};

/* Must stay where it is: parked threads look at it. */
struct threads {
    struct thread of[THREADS_MAX];
    size_t n;
    size_t tid_at; /* where a control block keeps its thread's number */
    void *robust;  /* the main thread's list, known to the kernel */
    size_t robust_n;
    int never; /* a futex that nobody wakes */
};

/* Parks every thread but the caller. Threads that block the signal are left alone: they are not
 * there in copies. */
must_check int threads_park(struct threads *t, struct err *e);
/* In a copy, first: tells the C library who its one thread is now. */
void threads_begin(const struct threads *t);
/* In a copy: brings them back. 0 or -errno. Only system calls: a signal handler may do it. */
must_check int threads_revive(const struct threads *t);

/* A copy of this process: 0 there, here its pid or -1. Runs none of the C library's handlers. */
pid_t threads_fork(void);
