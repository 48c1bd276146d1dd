/* SPDX-License-Identifier: MIT */
/*
 * The command after "--" on our command line: the operator's own, not sandboxed, with
 * our standard streams, environment and directory. When it ends so do we, with its
 * status; when we are asked to end so is it.
 *
 * It is forked before privileges are given away and waits; so it runs with the rights that the
 * daemon was started with, but not before everything listens.
 *
 * With --inside it is a process of the default sandbox instead (inside_command.h).
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

struct app;
struct customer;

enum { CUSTOMER_GRACE_S = 5, CUSTOMER_BY_SIGNAL = 255 };

/* status: its exit status, CUSTOMER_BY_SIGNAL when a signal ended it. */
typedef void customer_ended_fn(void *user, int status);

/* command: NULL-terminated, borrowed for good. */
must_check int customer_prepare(char *const *command, bool inside, struct customer **ret,
                                struct err *e);
/* Lets it run; fails when it cannot be executed. */
must_check int customer_start(struct customer *c, struct app *a, customer_ended_fn *ended,
                              void *user, struct err *e);
/* Passes a signal on; what does not end within CUSTOMER_GRACE_S is killed. */
void customer_signal(struct customer *c, int number);
void customer_kill(struct customer *c);
bool customer_is_running(const struct customer *c); /* NULL: no */
void customer_free(struct customer *c);             /* ends it; NULL is fine */
