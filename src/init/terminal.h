/* SPDX-License-Identifier: MIT */
/*
 * A program's terminal: a pair of devpts, made inside the sandbox by its helper, which carries
 * bytes between it and the pipes of the daemon. The daemon never holds the terminal itself: another
 * process that has the same end open can make its reads wait.
 *
 *   daemon ──pipe──▶ in ─▶ master ⇄ slave: streams and controlling terminal of the program
 *          ◀──pipe── out ◀─┘
 *
 * It ends with the program: what was written until then is carried out first.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { TERMINAL_FDS = 3, TERMINAL_IN = 4096, TERMINAL_OUT = 64 * 1024 };

struct terminal {
    int master;  /* -1: closed */
    int in, out; /* the ends of the pipes, not blocking; -1: closed */
    bool ending; /* the program has ended: what is there now is all */
    size_t in_n, in_at, out_n, out_at;
    char to[TERMINAL_IN], from[TERMINAL_OUT]; /* on their way */
};

/* size: plan_terminal(). The pipes are not taken if it fails: -errno. *ret_slave is the program's.
 */
must_check int terminal_open(uint32_t size, int in, int out, struct terminal **ret, int *ret_slave);
void terminal_close(struct terminal *t); /* NULL is fine */
void terminal_resize(struct terminal *t, uint32_t size);
/* In the program's process, which leads its session: makes it the controlling terminal and the
 * standard streams. -errno */
must_check int terminal_become(int slave);

/* What to wait for. */
void terminal_wait_for(const struct terminal *t, struct pollfd p[TERMINAL_FDS]);
/* Carries what can be carried. */
void terminal_carry(struct terminal *t);
/* The program has ended: what it wrote is carried, then it is over. */
void terminal_end(struct terminal *t);
bool terminal_is_over(const struct terminal *t); /* everything has been carried */
