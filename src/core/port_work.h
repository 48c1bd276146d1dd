/* SPDX-License-Identifier: MIT */
/*
 * Port: work that would block the loop (disk, hashing, large texts) done beside it.
 *
 * A piece of work is embedded in whatever it works on. run() is called on a worker thread and may
 * touch nothing but that object; done() is called later on the loop. In between the object belongs
 * to the worker.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum work_lane {
    WORK_LONG,  /* as much as a client or a program wants: owners take turns */
    WORK_SHORT, /* what others wait for and what is bounded: before everything long */
    WORK_NAMES, /* waits for name servers: on a thread of its own */
    WORK_LANES
};

enum { WORK_SHORT_BYTES = 1 << 20 }; /* reading, hashing or writing this many is short */

struct work;
struct work_pool;

typedef void work_fn(struct work *w);

struct work {
    work_fn *run;
    work_fn *done;
    enum work_lane lane;
    const void *owner;    /* of several pieces of long work: one request's; NULL: there is one */
    atomic_bool unwanted; /* see work_forget() */
    struct work *next, *same, *same_last; /* the pool's */
};

/* Which lane for so many bytes. */
static inline enum work_lane work_lane_of(uint64_t bytes)
{
    return bytes <= WORK_SHORT_BYTES ? WORK_SHORT : WORK_LONG;
}

void work_submit(struct work_pool *p, struct work *w);
/* Nobody wants it any more: run() is not called, unless that has begun; done() is. */
static inline void work_forget(struct work *w)
{
    atomic_store(&w->unwanted, true);
}

struct work_counts {
    size_t waiting;   /* submitted and not begun */
    uint64_t dropped; /* never begun, because nobody wanted them any more */
};

void work_count(struct work_pool *p, struct work_counts *ret);
