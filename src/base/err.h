/* SPDX-License-Identifier: MIT */
/*
 * Errors are values.
 *
 * A struct err lives on the caller's stack, needs no freeing and never fails
 * to be created. A keeper that cannot make a sandbox sends one to the daemon as
 * it is (struct launch_msg); steps inside a half-built sandbox send text
 * (steps_tell()).
 *
 * Convention: fallible functions return 0 or -1 and take `struct err *` last.
 * Leaf helpers in base/ that wrap a single system call return -errno instead;
 * the first caller that knows what we were trying to do turns it into words.
 */
#pragma once

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
    int sys;          /* errno value behind it, or 0 */
    const char *type; /* static: what the public calls it; NULL: its kind says enough */
    char text[500];
};

/* Each returns -1, so that `return err_set(...)` reads as one thought. */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int err_sys(struct err *e, int negative_errno, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Names an error of that kind (ERR_NONE: of any) that has no name yet. */
int err_type(struct err *e, enum err_kind kind, const char *type);

/* Puts "context: " in front of what is already there; kind and sys are kept. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
