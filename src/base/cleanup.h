/* SPDX-License-Identifier: MIT */
/*
 * Scope-bound ownership.
 *
 * A local that owns something is declared with one of the cleanup_* markers
 * and starts out empty. Leaving the scope by any path releases it. Handing it
 * to somebody else is spelled take_ptr() / take_fd(), so a reviewer can see
 * every transfer of ownership by searching for "take_".
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define cleanup_with(fn) __attribute__((__cleanup__(fn)))

static inline void freep(void *p)
{
    free(*(void **)p);
}

static inline void closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* A child nobody took is a child nobody wants: kill it and leave no zombie. */
static inline void reapp(pid_t *pid)
{
    if (*pid <= 0)
        return;
    if (kill(*pid, SIGKILL) == 0) /* else it would be waited for in vain */
        (void)waitpid(*pid, NULL, 0);
}

#define cleanup_free  cleanup_with(freep)
#define cleanup_close cleanup_with(closep)
#define cleanup_reap  cleanup_with(reapp)

static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

static inline pid_t take_pid(pid_t *pid)
{
    pid_t taken = *pid;

    *pid = -1;
    return taken;
}

#define take_ptr(pp)                                                                               \
    __extension__({                                                                                \
        __typeof__(*(pp)) taken_ = *(pp);                                                          \
        *(pp) = NULL;                                                                              \
        taken_;                                                                                    \
    })

/* For `void foo_free(struct foo *)` defines foo_freep(), the form cleanup_with() wants. */
#define DEFINE_FREEP(type, fn)                                                                     \
    static inline void fn##p(type **p)                                                             \
    {                                                                                              \
        fn(*p);                                                                                    \
    }

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n)       (1u << (n))

/* The object that a member is embedded in. */
#define container_of(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))
#define must_check                    __attribute__((__warn_unused_result__))
