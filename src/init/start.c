/* SPDX-License-Identifier: MIT */
#include "init/start.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHILD_STACK = 64 * 1024 };

struct call {
    void (*fn)(void *state);
    void *state;
};

static int child(void *user)
{
    struct call *c = user;

    c->fn(c->state);
    _exit(127);
}

int starter_open(struct starter *s)
{
    s->stack = mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    return s->stack == MAP_FAILED ? -errno : 0;
}

/* The child is suspended in our memory until it has become the program or failed. */
pid_t starter_run(const struct starter *s, void (*fn)(void *state), void *state)
{
    struct call c = {fn, state};

    return clone(child, s->stack + CHILD_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &c);
}
