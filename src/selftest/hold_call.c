/* SPDX-License-Identifier: MIT */
/*
 * What the kernel answers to a system call of the attacking process, seen as its tracer: a refused
 * call leaves no trace but that. The process makes the call again and again meanwhile (probe.h).
 */
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "selftest/hold.h"

enum { PATIENCE_MS = 15000, LOOK_MS = 1, STOP_CALL = 0x80, US_PER_MS = 1000 };

struct netlink_answer {
    struct nlmsghdr head;
    int error;
};

/* Until it stops. -1: it is gone, or does not. */
static int await_stop(pid_t pid, uint64_t deadline, int *ret_status)
{
    for (;;) {
        pid_t got = waitpid(pid, ret_status, __WALL | WNOHANG);

        if (got == pid)
            return WIFSTOPPED(*ret_status) ? 0 : -1;
        if ((got < 0 && errno != EINTR) || clock_us() > deadline)
            return -1;
        (void)poll(NULL, 0, LOOK_MS);
    }
}

/* A signal that was meant for it goes on to it. */
static int signal_of(int status)
{
    int number = WSTOPSIG(status);

    return number == (SIGTRAP | STOP_CALL) || status >> 16 ? 0 : number;
}

/* Routing answers with a message. It is read before the process can change it. */
static long routing_answer(pid_t pid, uint64_t address, long answer)
{
    struct netlink_answer a = {0};
    struct iovec here = {&a, sizeof a}, there = {(void *)(uintptr_t)address, sizeof a};

    if (answer < (long)sizeof a || process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof a)
        return answer;
    return a.head.nlmsg_type == NLMSG_ERROR ? a.error : 0;
}

/* From stop to stop, until the call was entered and left. */
static int follow(pid_t pid, long nr, uint64_t deadline, long *ret_answer)
{
    struct __ptrace_syscall_info at = {0}, entry = {0};
    bool inside = false;
    int status = 0;

    while (await_stop(pid, deadline, &status) == 0) {
        if (WSTOPSIG(status) == (SIGTRAP | STOP_CALL) &&
            ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof at, &at) > 0) {
            if (inside && at.op == PTRACE_SYSCALL_INFO_EXIT) {
                *ret_answer = (long)at.exit.rval;
                if (nr == SYS_recvfrom)
                    *ret_answer = routing_answer(pid, entry.entry.args[1], *ret_answer);
                return 0;
            }
            inside = at.op == PTRACE_SYSCALL_INFO_ENTRY && (long)at.entry.nr == nr;
            if (inside)
                entry = at;
        }
        if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(uintptr_t)signal_of(status)) < 0)
            return -1;
    }
    return -1;
}

/* Only who stands can be let go, and who is not let go cannot be buried by his parent. */
static void let_go(pid_t pid)
{
    int status;

    if (ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0 ||
        ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        return;
    (void)await_stop(pid, clock_us() + (uint64_t)PATIENCE_MS * US_PER_MS, &status);
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

int hold_call(long pid, long nr, long *ret_answer)
{
    uint64_t deadline = clock_us() + (uint64_t)PATIENCE_MS * US_PER_MS;
    pid_t p = (pid_t)pid;
    int r;

    if (ptrace(PTRACE_SEIZE, p, NULL, (void *)PTRACE_O_TRACESYSGOOD) < 0)
        return -1;
    r = ptrace(PTRACE_INTERRUPT, p, NULL, NULL) < 0 ? -1 : follow(p, nr, deadline, ret_answer);
    let_go(p);
    return r;
}
