/* SPDX-License-Identifier: MIT */
/* Names that a sandbox has asked for, and the address of 198.18.0.0/15 that each of them has there.
 * Those addresses are the sandbox's own: a connection to one arrives at the door. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NAMES_MAX = 4096 };

struct names {
    char **v; /* owned, each */
    size_t n, room;
};

/* Its address in network order, a new one if it has none; 0: there are too many. */
uint32_t names_address(struct names *t, const char *name);
/* NULL: nobody was told of that address. */
const char *names_of(const struct names *t, uint32_t address);
void names_done(struct names *t);
