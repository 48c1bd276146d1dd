/* SPDX-License-Identifier: MIT */
/*
 * One command in a persistent sandbox, by a worker of its crew: started, its two
 * streams read at once, ended as a whole tree when asked to.
 *
 *   start ──▶ started ──▶ output … exited … output ──▶ done
 *     └─────▶ failed
 *
 * The program's exit and the ends of its streams are different facts: a child that
 * keeps a stream open delays done(), not exited(). Children without a stream may
 * live on after done(); their worker looks after them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan.h"

struct command;
struct crew;

enum command_stream { COMMAND_OUT, COMMAND_ERR, COMMAND_STREAMS };

enum command_fault {
    COMMAND_NO_DIRECTORY, /* the working directory */
    COMMAND_NO_START,     /* anything else before the program ran */
    COMMAND_BUSY,         /* the sandbox has no process or no place in its queue left for it */
    COMMAND_LOST,         /* the sandbox ended first */
};

struct command_events {
    void (*started)(void *user, int pid);                        /* it runs */
    void (*failed)(void *user, enum command_fault why, int sys); /* instead of all others */
    void (*output)(void *user, enum command_stream s, const char *p, size_t n);
    void (*exited)(void *user, int status); /* may be NULL */
    void (*done)(void *user, int status);   /* the last one */
    void *user;
};

/* argv[0] of the plan is the file, the program's own begin with argv[1]. Nothing of the plan is
 * needed afterwards. No callback comes before the return. input.p == NULL: no standard input. */
must_check int command_start(struct crew *crew, const struct plan *p,
                             const struct command_events *events, struct command **ret,
                             struct err *e);
/* Back-pressure: nothing is read until resumed. */
void command_pause(struct command *c);
void command_resume(struct command *c);
/* Everything it started ends; done() still comes. */
void command_kill(struct command *c);
/* At any time; what still lives is killed unless done() has come. NULL is fine. */
void command_free(struct command *c);
DEFINE_FREEP(struct command, command_free)
