/* SPDX-License-Identifier: MIT */
/*
 * From what a family of endpoints asks for to the order of a process: a file with its arguments,
 * its environment and directory, as one place decides it. Everything that is borrowed must stay
 * until the process was started or has failed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "app/sandbox/process.h"

enum { PROCESS_ARGS_MAX = 4096 };

struct process_ask {
    struct bytes shell;          /* text for /bin/sh; n == 0: `file` */
    struct bytes file;           /* a name without a slash is looked for in PATH */
    const struct exec_var *args; /* the values */
    size_t args_n;
    const struct exec_var *env;
    size_t env_n;
    struct bytes cwd; /* n == 0: where commands of the sandbox begin; relative: below that */
    struct bytes tag;
    bool input_open;
    uint32_t terminal;   /* plan_terminal(); 0: none */
    uint64_t timeout_ms; /* 0: none */
};

/* An order and what it borrows. */
struct process_asked {
    struct process_order order;
    const char **argv; /* owned */
    char *cwd;         /* owned */
    struct buf config;
};

/* ERR_CALLER: what was asked for cannot be run. */
must_check int process_ask(const struct persistent *home, const struct process_ask *a,
                           struct process_asked *ret, struct err *e);
void process_asked_done(struct process_asked *k);
