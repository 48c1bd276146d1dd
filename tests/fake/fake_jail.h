/* SPDX-License-Identifier: MIT */
/*
 * A jail without a sandbox: the test plays init and the program, holding the other ends of all
 * descriptors. It remembers what it was asked.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/port_jail.h"

enum { FAKE_JAIL_MAX = 8 };

/* The sandbox's ends. */
struct fake_peer {
    int ctl, job, in, out, err;
};

struct fake_jail {
    struct jail jail;
    struct fake_peer peer[FAKE_JAIL_MAX]; /* by order of take() */
    struct limits limits;                 /* of the last take() */
    size_t taken, killed, released;
    bool warm, refuse;
    struct usage usage;          /* what usage() answers */
    unsigned usage_late;         /* so often it is not known yet */
    enum plan_template template; /* of those it hands out */
    unsigned threads;            /* that there are */
    const char *failure;         /* what failure() answers */
};

void fake_jail_init(struct fake_jail *f);
void fake_jail_done(struct fake_jail *f);

/* Init's side. */
void fake_init_says(struct fake_jail *f, size_t i, uint32_t verb, int32_t status, int64_t arg);
void fake_init_entry(struct fake_jail *f, size_t i, const char *name, int fd);
/* The next message for init: its verb, 0 when there is none, -1 at the end. */
int fake_init_hears(struct fake_jail *f, size_t i);
/* The program's side is closed: as after its death. */
void fake_program_gone(struct fake_jail *f, size_t i);
/* Init, too. */
void fake_init_gone(struct fake_jail *f, size_t i);
