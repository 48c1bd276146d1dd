/* SPDX-License-Identifier: MIT */
/*
 * Denials that explain themselves: what was refused to a program that failed, and which setting
 * would allow it.
 *
 * Found afterwards and only when a program failed, in what it said itself and in the kernel's
 * counters; a program that succeeds costs nothing. A program can therefore say that it was refused
 * something when it was not: this is a hint for people, and nothing is decided by it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/jw.h"
#include "core/result.h"

enum denial {
    DENIAL_INSTALL, /* of packages, from inside */
    /* Nothing was refused to the program: hints only, not in "denied". */
    DENIAL_MODULE, /* a module is not there */
    DENIAL_RESULT, /* what it returned is larger than the limit */
    DENIAL_NETWORK,
    DENIAL_READ_ONLY,
    DENIAL_CALL, /* a system call, or a privilege */
    DENIAL_PIDS,
    DENIAL_MEMORY,
    DENIAL_DISK,
    DENIAL_DESCRIPTORS,
    DENIAL_COUNT,
};

enum denial_place { DENIAL_EPHEMERAL, DENIAL_PERSISTENT }; /* they have settings of their own */

struct denial_facts {
    const struct buf *said[2]; /* what it wrote: error output, error frame; NULL: none */
    const struct usage *usage; /* NULL: unknown */
    int signal;                /* it died of; 0: none */
};

/* A set of BIT(enum denial); 0: nothing was found. */
unsigned denials_find(const struct denial_facts *f);
/* A member "denied" with an object for each; nothing when there is none. */
void denials_json(struct jw *w, unsigned set, enum denial_place place);
/* Words for the first of them; NULL when there is none. */
const char *denials_hint(unsigned set, enum denial_place place);
