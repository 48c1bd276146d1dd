/* SPDX-License-Identifier: MIT */
#include "walls/birth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/order.h"
#include "walls/rseq.h"

enum { STACK = 256 << 10, GUARD = 4096 };

struct birth {
    struct keeper *k;
    const struct launch_msg *m;
    const int *fds;
    size_t fds_n;
};

static int be_born(void *user)
{
    const struct birth *b = user;

    b->k->kind->become(b->k, b->m, b->fds, b->fds_n);
    return 1;
}

/* Of pid 1 while it has the keeper's memory. One after the other uses it. */
static char *stack_of(struct keeper *k)
{
    void *p;

    if (k->stack)
        return k->stack;
    p = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (mprotect(p, GUARD, PROT_NONE) < 0) {
        (void)munmap(p, STACK);
        return NULL;
    }
    k->stack = p;
    return k->stack;
}

static pid_t lend(struct birth *b, int *ret_pidfd)
{
    char *stack = stack_of(b->k);

    if (!stack)
        return -1;
    return clone(be_born, stack + STACK,
                 (int)(b->k->kind->namespaces | CLONE_VM | CLONE_VFORK | CLONE_PIDFD) | SIGCHLD, b,
                 ret_pidfd);
}

/* The first process comes back to where the keeper was: interpreters know where their stack is. */
pid_t birth_clone(struct keeper *k, const struct launch_msg *m, const int *fds, size_t fds_n,
                  int *ret_pidfd)
{
    struct birth b = {.k = k, .m = m, .fds = fds, .fds_n = fds_n};

    if (setjmp(k->back) == 0)
        return lend(&b, ret_pidfd);
    rseq_register();
    init_first(k->host, &k->cpus, k->gate);
}

/* Taken. */
static int place(int fd, int number)
{
    cleanup_close int from = fd;

    if (fd < 0)
        return -errno;
    return fd == number ? take_fd(&from), 0 : fd_move(fd, number);
}

int birth_keep(void)
{
    int r = place(memfd_create("order", MFD_CLOEXEC), INIT_FD_ORDER);

    if (r == 0)
        r = place(open(INIT_PROGRAM, O_RDONLY | O_CLOEXEC), INIT_FD_PROGRAM);
    return r ? r : place(open("/dev/null", O_RDWR | O_CLOEXEC), INIT_FD_NULL);
}

/* Something to read for the program that we become. What the last one was told is overwritten, and
 * nobody but the two of us can read it. */
static int order_put(const struct init_order *o)
{
    if (pwrite(INIT_FD_ORDER, o, sizeof *o, 0) != sizeof *o ||
        lseek(INIT_FD_ORDER, 0, SEEK_SET) < 0)
        return -errno;
    return 0;
}

static int keep_open(const struct launch_msg *m)
{
    const int kept[] = {INIT_FD_CTL, INIT_FD_ORDER, launch_has_tree(m) ? INIT_FD_END : INIT_FD_CTL};

    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        if (fcntl(kept[i], F_SETFD, 0) < 0)
            return -errno;
    return 0;
}

void birth_end(struct keeper *k, const struct launch_msg *m)
{
    static char *const argv[] = {(char *)"sandbox-init", NULL}, *const envp[] = {NULL};
    struct init_order o = {
        .msg = *m, .cpus = k->cpus, .accounted = !(m->flags & LAUNCH_WATCH_MEMORY)};
    int gate[2], r;

    if (pipe2(gate, O_CLOEXEC) < 0)
        steps_fail(INIT_FD_CTL, "gate", -errno);
    o.first = init_fork(k->host);
    if (o.first == 0) {
        (void)close(gate[1]); /* else it would never see that pid 1 is gone */
        k->gate = gate[0];
        longjmp(k->back, 1);
    }
    if (o.first < 0)
        steps_fail(INIT_FD_CTL, "start a process", -errno);
    r = steps_place(&gate[1], INIT_FD_GATE);
    if (r == 0)
        r = order_put(&o);
    if (r == 0)
        r = keep_open(m);
    if (r < 0)
        steps_fail(INIT_FD_CTL, "order of sandbox-init", r);
    (void)syscall(SYS_execveat, INIT_FD_PROGRAM, "", argv, envp, AT_EMPTY_PATH);
    steps_fail(INIT_FD_CTL, "execute sandbox-init", -errno);
}
