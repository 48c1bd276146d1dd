/* SPDX-License-Identifier: MIT */
/* A shell command in a persistent sandbox: what the caller gave becomes a plan, a deadline ends it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "app/sandbox/sandboxes.h"
#include "core/exec_spec.h"
#include "proc/command.h"

struct shell;

struct shell_order {
    struct bytes cmd, cwd; /* may contain NUL, which then is the failure */
    const struct exec_var *env;
    size_t env_n;
    struct bytes input;  /* p == NULL: none */
    uint64_t timeout_ms; /* 0: none */
};

struct shell_events {
    void (*started)(void *user, int pid);
    void (*failed)(void *user, enum command_fault why, int sys); /* instead of all others */
    void (*output)(void *user, enum command_stream s, const char *p, size_t n);
    void (*exited)(void *user, int code, bool killed); /* may be NULL; code -1: by a signal */
    void (*done)(void *user, int code, bool timed_out);
    void *user;
};

/* It starts at once, or when its turn comes among the commands of this sandbox: until started() or
 * failed() what the order points to must stay. The time limit begins with the start. No callback
 * comes before the return. On failure *ret_why says what failed. */
must_check int shell_start(struct persistent *p, const struct shell_order *o,
                           const struct shell_events *events, struct shell **ret,
                           enum command_fault *ret_why, struct err *e);
void shell_pause(struct shell *s);
void shell_resume(struct shell *s);
void shell_kill(struct shell *s); /* the whole tree; done() still comes */
void shell_free(struct shell *s); /* at any time; kills unless done() has come. NULL is fine */
