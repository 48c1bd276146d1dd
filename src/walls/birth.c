/* SPDX-License-Identifier: MIT */
#include "walls/birth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/order.h"
#include "init/own_process.h"
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

/* The last pid 1 made the memory undumpable while it had it. That is undone, or the files of the
 * new one in /proc would be root's of the host. */
static pid_t lend(struct birth *b, int *ret_pidfd)
{
    char *stack = stack_of(b->k);

    if (!stack || process_visible(true) < 0)
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

    if (!k->copies)
        return lend(&b, ret_pidfd);
    if (setjmp(k->back) == 0)
        return lend(&b, ret_pidfd);
    rseq_register();
    k->copies->begin(k->copies->user, &k->cpus, k->gate);
}

/* Taken. */
static int place(int fd, int number)
{
    cleanup_close int from = fd;

    if (fd < 0)
        return -errno;
    return fd == number ? take_fd(&from), 0 : fd_move(fd, number);
}

int birth_keep(struct keeper *k)
{
    int r = place(memfd_create("order", MFD_CLOEXEC), INIT_FD_ORDER);
    int program = k->program >= 0 ? take_fd(&k->program) : open(INIT_PROGRAM, O_RDONLY | O_CLOEXEC);

    if (r == 0)
        r = place(program, INIT_FD_PROGRAM);
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

/* Everything else is closed by the exec. */
static int keep_open(const struct init_order *o)
{
    int last = o->first ? INIT_FD_CTL : INIT_FD_ERR, r = 0;

    for (int fd = INIT_FD_CTL; fd <= last && r == 0; fd++)
        r = fcntl(fd, F_SETFD, 0);
    if (r == 0 && o->tree)
        r = fcntl(INIT_FD_END, F_SETFD, 0);
    return r < 0 || fcntl(INIT_FD_ORDER, F_SETFD, 0) < 0 ? -errno : 0;
}

/* A warm process (init/warm.h) is asked through its gate, which pid 1 must not wait for. */
static int make_gate(int gate[2], bool persistent)
{
    if (!persistent)
        return pipe2(gate, O_CLOEXEC) < 0 ? -errno : 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, gate) < 0)
        return -errno;
    return fcntl(gate[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* Forks the copy, which goes back into birth_clone(); the gate that it waits at stays with pid 1.
 */
static pid_t fork_first(struct keeper *k, bool persistent)
{
    int gate[2], r;
    pid_t pid;

    r = make_gate(gate, persistent);
    if (r < 0)
        steps_fail(INIT_FD_CTL, "gate", r);
    pid = k->copies->fork(k->copies->user);
    if (pid == 0) {
        (void)close(gate[1]); /* else it would never see that pid 1 is gone */
        k->gate = gate[0];
        longjmp(k->back, 1);
    }
    if (pid < 0)
        steps_fail(INIT_FD_CTL, "start a process", -errno);
    r = steps_place(&gate[1], INIT_FD_GATE);
    if (r < 0)
        steps_fail(INIT_FD_CTL, "gate", r);
    return pid;
}

void birth_end(struct keeper *k, struct init_order *o)
{
    static char *const argv[] = {(char *)"sandbox-init", NULL}, *const envp[] = {NULL};
    int r;

    o->cpus = k->cpus;
    o->walled = true;
    o->first = k->copies ? fork_first(k, o->msg.flags & LAUNCH_PERSISTENT) : 0;
    r = order_put(o);
    if (r == 0)
        r = keep_open(o);
    if (r < 0)
        steps_fail(INIT_FD_CTL, "order of sandbox-init", r);
    (void)syscall(SYS_execveat, INIT_FD_PROGRAM, "", argv, envp, AT_EMPTY_PATH);
    steps_fail(INIT_FD_CTL, "execute sandbox-init", -errno);
}
