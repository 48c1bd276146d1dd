/* SPDX-License-Identifier: MIT */
#include "init/warm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/own_process.h"
#include "wire/wire.h"

enum { FD_GATE = 3, FD_APART = 64 };

/* ---- the warm process ---- */

/* Nothing of pid 1's stays open but the gate; the standard streams are nothing already. */
static int keep_gate(int gate)
{
    int apart = fcntl(gate, F_DUPFD_CLOEXEC, FD_APART);

    if (apart < 0 || dup3(apart, FD_GATE, O_CLOEXEC) < 0)
        return -errno;
    return fd_close_from(FD_GATE + 1);
}

/* A sibling. glibc has no name for that; nothing in here waits for a lock or has a thread. */
static pid_t clone_sibling(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, NULL, NULL, 0);
}

__attribute__((noreturn)) static void become_helper(const struct helper_host *host,
                                                    const struct init_msg *m, int ctl)
{
    const struct init_msg hello = {.verb = INIT_HELP, .token = m->token, .pid = getpid()};

    if (fd_send(FD_GATE, &hello, sizeof hello, NULL, 0) < 0)
        _exit(1);
    helper_run(ctl, &(struct helper_conf){.host = host});
}

void warm_serve(const struct helper_host *host, const struct cpus *cpus, int gate)
{
    if (process_apart() < 0 || process_visible(false) < 0 || keep_gate(gate) < 0)
        _exit(126);
    process_name("sandbox-warm");
    process_spread(cpus);
    (void)signal(SIGPIPE, SIG_IGN);
    for (;;) {
        cleanup_close int ctl = -1;
        size_t n = 1;
        struct init_msg m;
        ssize_t got = fd_recv(FD_GATE, &m, sizeof m, &ctl, &n);

        if (got == -EINTR)
            continue;
        if (got != sizeof m || n != 1)
            _exit(got != 0);
        if (clone_sibling() == 0)
            become_helper(host, &m, take_fd(&ctl));
    }
}

/* ---- pid 1's end ---- */

static struct warm_asked *find(struct warm *w, uint32_t token)
{
    for (size_t i = 0; i < w->asked_n; i++)
        if (w->asked[i].token == token)
            return &w->asked[i];
    return NULL;
}

bool warm_ask(struct warm *w, uint32_t token, int ctl)
{
    const struct init_msg m = {.verb = INIT_HELP, .token = token};

    if (w->gate < 0 || w->asked_n == WARM_ASKED_MAX ||
        fd_send(w->gate, &m, sizeof m, &ctl, 1) < 0) /* a tenant can stop it: then this is full */
        return false;
    w->asked[w->asked_n++] = (struct warm_asked){.token = token};
    return true;
}

bool warm_end(struct warm *w, uint32_t token)
{
    struct warm_asked *a = find(w, token);

    if (a)
        a->ended = true;
    return a != NULL;
}

/* Numbers are given again: one that is no child of ours is nobody's that we may kill. */
static bool is_child(pid_t pid)
{
    siginfo_t si;

    return pid > 1 && waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool warm_read(struct warm *w, uint32_t *ret_token, pid_t *ret_pid)
{
    struct warm_asked *a;
    struct init_msg m;
    ssize_t got = fd_recv(w->gate, &m, sizeof m, NULL, NULL);

    if (got == -EAGAIN || got == -EINTR)
        return false;
    if (got != sizeof m) {
        warm_lost(w);
        return false;
    }
    a = find(w, m.token);
    if (!a || !is_child(m.pid))
        return false;
    if (a->ended)
        (void)kill(m.pid, SIGKILL);
    *a = w->asked[--w->asked_n];
    *ret_token = m.token;
    *ret_pid = m.pid;
    return true;
}

void warm_lost(struct warm *w)
{
    fd_close_all(&w->gate, 1);
    w->asked_n = 0;
    w->pid = 0;
}
