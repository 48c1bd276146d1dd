/* SPDX-License-Identifier: MIT */
/*
 * The warm process of a persistent sandbox: a copy of a zygote's interpreter that was made behind
 * the walls, before any byte of the tenant was read, and only forks. For each request of pid 1 it
 * makes a helper (helper.h), whose program is a copy of the interpreter again instead of a file
 * that is executed.
 *
 *   pid 1 ──HELP, token, control socket──▶ warm process ──clone, CLONE_PARENT──▶ helper ──fork──▶
 * program ◀──────────────HELP, token, its number──────────────────────────────────────┘
 *
 * The helper is a child of pid 1 as all helpers are, says its number before it does anything else,
 * and ends when its program's tree has. All three have the tenant's user and are counted in the
 * sandbox's limits. The tenant cannot look into the warm process or a helper, but can kill them:
 * then pid 1 starts helpers of its own, and interpreters start as files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "init/helper.h"

struct cpus; /* wire/cpus.h */

/* In the copy, with the descriptors of pid 1; gate: a socket to pid 1. */
__attribute__((noreturn)) void warm_serve(const struct helper_host *host, const struct cpus *cpus,
                                          int gate);

/* ---- pid 1's end ---- */

enum { WARM_ASKED_MAX = 64 };

/* Helpers that were asked of it and have not said their number. */
struct warm {
    int gate;  /* owned: -1: there is none, or no longer */
    pid_t pid; /* of the warm process */
    struct warm_asked {
        uint32_t token;
        bool ended; /* it is to be killed as soon as it has a number */
    } asked[WARM_ASKED_MAX];
    size_t asked_n;
};

/* ctl stays the caller's. False: not asked, start one without it. */
bool warm_ask(struct warm *w, uint32_t token, int ctl);
/* True: it has no number yet, and will be killed. */
bool warm_end(struct warm *w, uint32_t token);
/* The gate is readable. True: *ret_token is process *ret_pid, a child of ours. */
bool warm_read(struct warm *w, uint32_t *ret_token, pid_t *ret_pid);
/* It has died: what was asked of it never comes. */
void warm_lost(struct warm *w);
