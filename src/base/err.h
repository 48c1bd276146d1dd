/* SPDX-License-Identifier: MIT */
/*
 * Errors are values.
 *
 * A struct err lives on the caller's stack, needs no freeing and never fails
 * to be created. It is small enough to cross a pipe in one atomic write, so a
 * half-built sandbox reports its failure to the daemon with the very same
 * type that the HTTP layer later turns into a response.
 *
 * Convention: fallible functions return 0 or -1 and take `struct err *` last.
 * Leaf helpers in base/ that wrap a single system call return -errno instead;
 * the first caller that knows what we were trying to do turns it into words.
 */
#pragma once

#include <limits.h>

enum err_kind {
    ERR_NONE = 0,
    ERR_CALLER, /* the request is malformed: fix it and try again */
    ERR_DENIED, /* well formed, but policy says no */
    ERR_ABSENT, /* the thing named does not exist */
    ERR_BUSY,   /* a limit is reached: try again later */
    ERR_HOST,   /* the machine failed us: kernel, disk, missing feature */
    ERR_BUG,    /* we failed ourselves */
    ERR_KIND_COUNT,
};

struct err {
    enum err_kind kind;
    int sys; /* errno value behind it, or 0 */
    char text[500];
};

_Static_assert(sizeof(struct err) <= _POSIX_PIPE_BUF, "an error must cross a pipe atomically");

/* Each returns -1, so that `return err_set(...)` reads as one thought. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int err_sys(struct err *e, int negative_errno, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of what is already there; kind and sys are kept. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Across a process boundary. err_recv() returns 1 if the other side reported
 * an error, 0 if it closed the pipe instead, and trusts neither the length,
 * the kind nor the terminator of what it read.
 */
void err_send(int fd, const struct err *e);
int err_recv(int fd, struct err *e);

const char *err_kind_name(enum err_kind kind);
