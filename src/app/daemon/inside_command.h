/* SPDX-License-Identifier: MIT */
/*
 * The command after "--" with --inside: a process of the default sandbox, with its files, limits
 * and environment. It is listed with its log like any other process there, and its output goes to
 * our standard streams. What it leaves stays in the sandbox.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

struct app;
struct inside_command;

enum { INSIDE_NOT_STARTED = 127, INSIDE_BY_SIGNAL = 255 };

/* status: its exit status, INSIDE_BY_SIGNAL when a signal or a limit ended it, INSIDE_NOT_STARTED
 * when it never ran. */
typedef void inside_ended_fn(void *user, int status);

/* command: NULL-terminated, borrowed for good; the first word is looked for on the PATH inside. */
must_check int inside_command_start(struct app *a, char *const *command, inside_ended_fn *ended,
                                    void *user, struct inside_command **ret, struct err *e);
bool inside_command_is_running(const struct inside_command *c);
/* To it and what it has started in its process group. */
void inside_command_signal(struct inside_command *c, int number);
void inside_command_kill(struct inside_command *c);
void inside_command_free(struct inside_command *c); /* NULL is fine */
