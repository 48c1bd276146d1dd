/* SPDX-License-Identifier: MIT */
#include "zygote/threads.h"

#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "walls/rseq.h"

enum {
    ROUNDS_MAX = 1000,
    ROUND_MS = 5,         /* between two attempts on a busy thread */
    CONTROL_BLOCK = 1024, /* the part of it that is searched */
};

enum thread_state { THREAD_ASKED, THREAD_PARKED, THREAD_BUSY };

/* clang-format off */
enum {
    CLONE_THREAD_FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                         CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
};
/* clang-format on */

/* Remembers where its caller is: 0, and 1 when a revived thread returns from it again. */
__attribute__((returns_twice)) int thread_save(struct thread_frame *f);
/* clone(2), whose child continues where `f` was saved. The tid or -errno. */
long thread_revive(unsigned long flags, const struct thread_frame *f, int *tid, void *tls);

/* clang-format off */
__asm__(".text\n"
        ".hidden thread_save\n.globl thread_save\n.type thread_save, @function\n"
        "thread_save:\n"
        "endbr64\n"
        "movq (%rsp), %rax\n"  "movq %rax, 0(%rdi)\n"
        "leaq 8(%rsp), %rax\n" "movq %rax, 8(%rdi)\n"
        "movq %rbx, 16(%rdi)\n" "movq %rbp, 24(%rdi)\n" "movq %r12, 32(%rdi)\n"
        "movq %r13, 40(%rdi)\n" "movq %r14, 48(%rdi)\n" "movq %r15, 56(%rdi)\n"
        "xorl %eax, %eax\n"
        "ret\n"
        ".size thread_save, .-thread_save\n"
        ".hidden thread_revive\n.globl thread_revive\n.type thread_revive, @function\n"
        "thread_revive:\n"
        "endbr64\n"
        "pushq %r12\n"
        "movq %rsi, %r12\n"
        "movq 8(%r12), %rsi\n" /* clone(flags, stack, tid, tid, tls) */
        "movq %rdx, %r10\n"
        "movq %rcx, %r8\n"
        "movl $56, %eax\n"
        "syscall\n"
        "testq %rax, %rax\n"
        "jz 1f\n"
        "popq %r12\n"
        "ret\n"
        "1: movq %r12, %rdi\n"
        "movq 8(%rdi), %rsp\n"
        "movq 16(%rdi), %rbx\n" "movq 24(%rdi), %rbp\n" "movq 32(%rdi), %r12\n"
        "movq 40(%rdi), %r13\n" "movq 48(%rdi), %r14\n" "movq 56(%rdi), %r15\n"
        "movl $1, %eax\n"
        "jmp *0(%rdi)\n"
        ".size thread_revive, .-thread_revive\n");
/* clang-format on */

struct asked {
    struct threads *all;
    struct thread *one;
};

static int this_tid(void)
{
    return (int)syscall(SYS_gettid);
}

static long futex(int *at, int op, int value, const struct timespec *timeout)
{
    return syscall(SYS_futex, at, op, value, timeout, NULL, 0);
}

static int park_signal(void)
{
    return SIGRTMAX - 2;
}

/* ---- in the helper threads ---- */

/* Was it waiting in the kernel? Either the call will be made again, or it has just been cut short.
 */
static bool is_idle(const ucontext_t *u)
{
    static const unsigned char syscall_insn[2] = {0x0f, 0x05};
    const char *ip = (const char *)u->uc_mcontext.gregs[REG_RIP];
    long a = u->uc_mcontext.gregs[REG_RAX];

    if (memcmp(ip, syscall_insn, sizeof syscall_insn) == 0)
        return a == SYS_futex || a == SYS_epoll_wait || a == SYS_epoll_pwait;
    return memcmp(ip - sizeof syscall_insn, syscall_insn, sizeof syscall_insn) == 0 && a == -EINTR;
}

static void answer(struct thread *t, enum thread_state state)
{
    __atomic_store_n(&t->state, (int)state, __ATOMIC_SEQ_CST);
    (void)futex(&t->state, FUTEX_WAKE, 1, NULL);
}

static void park(int sig, siginfo_t *si, void *context)
{
    const struct asked *a = si->si_value.sival_ptr;
    struct threads *all = a->all;
    struct thread *t = a->one;
    int saved = errno;

    (void)sig;
    if (!is_idle(context)) {
        answer(t, THREAD_BUSY);
        errno = saved;
        return;
    }
    t->self = (char *)pthread_self();
    if (thread_save(&t->frame) == 0) {
        answer(t, THREAD_PARKED);
        for (;;)
            (void)futex(&all->never, FUTEX_WAIT, 0, NULL);
    }
    rseq_register(); /* in a copy, revived */
    errno = saved;
}

/* ---- parking ---- */

static bool is_known(const struct threads *t, int tid)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->of[i].tid == tid)
            return true;
    return false;
}

static bool blocks(int tid, int sig)
{
    char path[64], line[128];
    unsigned long long blocked = 0;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    f = fopen(path, "re");
    if (!f)
        return true; /* it has just ended */
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "SigBlk:", 7) == 0)
            blocked = strtoull(line + 7, NULL, 16);
    (void)fclose(f);
    return (blocked >> (sig - 1) & 1) != 0;
}

static bool park_one(struct threads *t, int tid)
{
    const struct timespec patience = {.tv_nsec = 50000000};
    struct thread *one = &t->of[t->n];
    struct asked a = {.all = t, .one = one};
    siginfo_t si = {.si_signo = park_signal(), .si_code = SI_QUEUE};

    si.si_pid = getpid();
    si.si_value.sival_ptr = &a;
    *one = (struct thread){.tid = tid};
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, si.si_signo, &si) < 0)
        return false;
    while (__atomic_load_n(&one->state, __ATOMIC_SEQ_CST) == THREAD_ASKED)
        (void)futex(&one->state, FUTEX_WAIT, THREAD_ASKED, &patience);
    if (one->state != THREAD_PARKED)
        return false;
    t->n++;
    return true;
}

/* True when there was nothing left to park. */
static int park_round(struct threads *t, bool *ret_done, struct err *e)
{
    DIR *d = opendir("/proc/self/task");
    bool done = true;

    if (!d)
        return err_sys(e, -errno, "list threads");
    for (struct dirent *at; (at = readdir(d));) {
        int tid = (int)strtol(at->d_name, NULL, 10);

        if (tid == 0 || tid == this_tid() || is_known(t, tid) || blocks(tid, park_signal()))
            continue;
        done = false;
        if (t->n == THREADS_MAX)
            break;
        (void)park_one(t, tid);
    }
    (void)closedir(d);
    *ret_done = done;
    return 0;
}

/* Where in a control block is the thread's number? Where all of them agree. */
static int find_tid(struct threads *t, struct err *e)
{
    const char *mine = (const char *)pthread_self();

    for (size_t at = 0; at < CONTROL_BLOCK; at += sizeof(int)) {
        bool all = t->n > 0 && *(const int *)(mine + at) == this_tid();

        for (size_t i = 0; i < t->n && all; i++)
            all = *(const int *)(t->of[i].self + at) == t->of[i].tid;
        if (all) {
            t->tid_at = at;
            return 0;
        }
    }
    return err_set(e, ERR_HOST, "the C library's thread control block is not as known");
}

int threads_park(struct threads *t, struct err *e)
{
    const struct timespec between = {.tv_nsec = ROUND_MS * 1000000};
    struct sigaction mine = {.sa_sigaction = park, .sa_flags = SA_SIGINFO | SA_RESTART}, before;
    bool done = false;

    *t = (struct threads){0};
    (void)sigfillset(&mine.sa_mask);
    if (sigaction(park_signal(), &mine, &before) < 0)
        return err_sys(e, -errno, "signal to park threads");
    for (int round = 0; round < ROUNDS_MAX && !done; round++) {
        if (round > 0)
            (void)nanosleep(&between, NULL);
        if (park_round(t, &done, e) < 0)
            return -1;
    }
    (void)sigaction(park_signal(), &before, NULL);
    if (!done)
        return err_set(e, ERR_HOST, "helper threads never came to rest");
    if (syscall(SYS_get_robust_list, 0, &t->robust, &t->robust_n) < 0)
        return err_sys(e, -errno, "list of robust locks");
    return find_tid(t, e);
}

/* ---- in a copy ---- */

/* What fork() would have done for the one thread there is. */
void threads_begin(const struct threads *t)
{
    int *tid = (int *)(void *)((char *)pthread_self() + t->tid_at);

    *tid = this_tid();
    (void)syscall(SYS_set_tid_address, tid);
    (void)syscall(SYS_set_robust_list, t->robust, t->robust_n);
}

int threads_revive(const struct threads *t)
{
    sigset_t all, before;
    long r = 0;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before); /* theirs comes back with their frame */
    for (size_t i = 0; i < t->n && r >= 0; i++)
        r = thread_revive(CLONE_THREAD_FLAGS, &t->of[i].frame,
                          (int *)(void *)(t->of[i].self + t->tid_at), t->of[i].self);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return r < 0 ? (int)r : 0;
}

pid_t threads_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}
