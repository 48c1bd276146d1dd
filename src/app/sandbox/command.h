/* SPDX-License-Identifier: MIT */
/*
 * A shell command in a persistent sandbox: a ticket among the commands of that sandbox, then a plan
 * that the same engine runs as any other (core/port_run.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "app/sandbox/sandboxes.h"
#include "core/admission.h"
#include "core/exec_spec.h"
#include "core/port_run.h"

struct command_order {
    struct bytes cmd, cwd; /* may contain NUL, which then is the failure */
    const struct exec_var *env;
    size_t env_n;
    struct bytes input;  /* then end of file, unless it stays open */
    bool input_open;     /* command_input() */
    uint32_t terminal;   /* not 0: its streams are a terminal of that size (plan_terminal()) */
    uint64_t timeout_ms; /* 0: none */
    uint64_t output_max; /* of each stream, where output() does not take them */
    enum plan_template template; /* that argv is to be a copy of, where the sandbox has one */
    const char *const *argv; /* instead of cmd: the file, then the program's own arguments; NULL */
    struct bytes frames;     /* of a program that talks over descriptor 3: the first ones */
    uint64_t frame_max;      /* bytes of one frame of its */
};

struct command;

struct command_events {
    void (*started)(void *user); /* may be NULL; result.pid is known */
    run_bytes_fn *output;        /* NULL: the result keeps the output */
    run_frame_fn *frame;         /* NULL: it has no frames */
    run_exited_fn *exited;       /* may be NULL */
    run_input_fn *input;         /* may be NULL */
    void (*done)(void *user);    /* the last one, also instead of started() */
    void *user;
};

struct command {
    struct persistent *home; /* borrowed */
    struct ticket ticket;
    struct command_order order; /* what it points to is the caller's, until started() or done() */
    struct command_events events;
    struct run *run; /* owned; NULL: it waits for its turn, or could not be started */
    struct run_result result;
    struct event *wait; /* owned: the limit of its waiting */
    uint64_t asked_us;
};

/* Starts at once, or when its turn comes. The time limit begins when the program does. No callback
 * comes before the return. On failure *ret_at says what failed. */
must_check int command_start(struct persistent *p, const struct command_order *o,
                             const struct command_events *events, struct command **ret,
                             enum run_fault *ret_at, struct err *e);
void command_pause(struct command *c); /* output() and frame() */
void command_resume(struct command *c);
/* Of a program with frames; -1: it does not run. */
must_check int command_send(struct command *c, const void *p, size_t n);
must_check int command_interrupt(struct command *c); /* SIGINT to its process group */
/* As run_signal(), run_resize() and run_input*() (core/port_run.h). */
must_check int command_signal(struct command *c, int number, bool group);
must_check int command_resize(struct command *c, uint32_t terminal);
enum run_input command_input(struct command *c, const void *p, size_t n);
size_t command_input_waiting(const struct command *c);
void command_input_end(struct command *c);
void command_output_read(struct command *c); /* output() gets what is in the pipes now */
/* Everything it started ends; done() still comes. */
void command_kill(struct command *c, enum end_reason why);
/* At any time; what still lives is killed unless done() has come. NULL is fine. */
void command_free(struct command *c);

/* As this family reports it: -1 for a program that was ended by a signal or a limit. */
int command_exit_code(const struct command *c);
/* done() has come, and the program never ran: result.fault_at says why. */
static inline bool command_failed(const struct command *c)
{
    return c->result.reason == END_FAILED;
}
