/* SPDX-License-Identifier: MIT */
/*
 * Kernel objects of a warmed process, made anew in its copies.
 *
 * What an event loop opens when it starts, epoll sets, event counters and
 * pipes, would be shared by all copies: one could empty or fill what another
 * waits on. So they are noted once, nothing of them is left open in a sandbox,
 * and the first process makes its own under the same numbers, with what was in
 * them. Memory that the process told the kernel not to copy is copied.
 *
 * With threads.h this is what a Node.js zygote needs. `NODE_ZYGOTE=false` does without: node is
 * then started for each run, and an answer takes 24 times as long when one comes every 20 ms.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/cleanup.h"
#include "base/err.h"

enum {
    RENEW_FDS_MAX = 48,
    RENEW_WATCHED_MAX = 16, /* by one epoll set */
    RENEW_PIPE_MAX = 64,    /* bytes waiting in one pipe */
    RENEW_SIGNALS = 64,
    RENEW_NAME = 16,
};

enum renew_kind { RENEW_EPOLL, RENEW_EVENT, RENEW_PIPE, RENEW_PIPE_END, RENEW_NULL };

struct renew_fd {
    int fd, flags; /* of open(2) */
    enum renew_kind kind;
    uint64_t id;    /* pipes: their inode */
    int other;      /* PIPE: the writing end */
    uint64_t count; /* EVENT: its counter; PIPE: bytes */
    char bytes[RENEW_PIPE_MAX];
    size_t watched_n;
    struct {
        int fd;
        struct epoll_event event;
    } watched[RENEW_WATCHED_MAX];
};

struct renew {
    struct renew_fd fds[RENEW_FDS_MAX];
    size_t n;
    struct sigaction actions[RENEW_SIGNALS];
    char name[RENEW_NAME];
};

/* Notes everything but descriptors below `from`. Refuses what it could not make again. */
must_check int renew_note(struct renew *r, int from, struct err *e);
/* In a copy that has closed them: makes them. 0 or -errno. */
must_check int renew_make(const struct renew *r);

/* Lets forks copy all memory. */
must_check int renew_memory(struct err *e);
/* Puts the program's code on huge pages, if the kernel has some. Copies then neither fault it in
 * piece by piece nor have thousands of pages to forget when they end. No thread may run it now. */
void renew_code(void);
