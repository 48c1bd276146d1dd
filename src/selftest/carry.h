/* SPDX-License-Identifier: MIT */
/*
 * Carrying out one attack: an errand says what runs and what it is told, a carrier runs it
 * somewhere, a job is one that is under way.
 */
#pragma once

#include "base/buf.h"
#include "core/config.h"
#include "core/limits.h"
#include "core/port_lang.h"
#include "core/port_run.h"
#include "selftest/attack.h"
#include "selftest/witness.h"

struct event_base;

/* One program, completely: everything is owned. */
struct errand {
    const struct attack *attack;   /* borrowed */
    const struct witness *witness; /* borrowed */
    struct limits limits;
    struct buf event, code;
    bool plants; /* the first of two */
    bool fake;
};

/* One that is under way, or has ended. */
struct job {
    struct errand errand;
    struct run_result result;
    uint64_t began_us;
    bool done;
    bool holding;              /* it has said HOLD */
    bool weak;                 /* not all could be seen of it while it held */
    char leak[SIGHT_WORDS];    /* what was found in its workspace that is not its own */
    char outside[SIGHT_WORDS]; /* what was seen of it while it held */
    void *carrier;             /* the carrier's own */
};

struct carrier;
typedef int carrier_start_fn(struct carrier *c, struct job *j, struct err *e);
/* Until it has ended or holds. */
typedef void carrier_wait_fn(struct carrier *c, struct job *j);
/* Ends it if need be, and frees what the carrier had of it. */
typedef void carrier_end_fn(struct carrier *c, struct job *j);

struct carrier {
    carrier_start_fn *start;
    carrier_wait_fn *wait;
    carrier_end_fn *end;
    const struct config *config;  /* borrowed */
    const struct lang_ops *langs; /* borrowed */
    struct witness *witness;      /* borrowed */
    const char *secret;           /* borrowed */
    unsigned slow;                /* how many times as much time as usual */
    /* in a jail */
    struct event_base *base;   /* borrowed */
    struct run_engine *engine; /* borrowed */
};

/* The whole of one row. `fake`: the probe feigns success (bare.c). */
void carry_attack(struct carrier *c, const struct attack *a, bool fake, struct sight *ret);

/* ---- for carriers ---- */

extern const char probe_program[];
extern const size_t probe_program_n;

/* The arguments of the probe; the text lives in the errand and in `room`. */
enum { PROBE_ARGS = 7, PROBE_ROOM = 24 };
void errand_probe_args(const struct errand *e, const char *path, char room[PROBE_ROOM],
                       const char *ret[PROBE_ARGS]);
bool errand_is_python(const struct errand *e);
void errand_write_code(struct errand *e);
/* Has it said BREACH? */
bool job_is_through(const struct job *j);
/* Looks whether it holds by now, and at what it holds. */
void job_look(struct job *j);
/* A descriptor of a file that was left in the workspace. */
void job_take_file(struct job *j, const char *name, int fd);

void carrier_in_jail(struct carrier *c); /* carry_jail.c */
