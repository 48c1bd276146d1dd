/* SPDX-License-Identifier: MIT */
/*
 * Port: work that would block the loop (disk, hashing, large texts) done beside it.
 *
 * A piece of work is embedded in whatever it works on. run() is called on a worker thread and may
 * touch nothing but that object; done() is called later on the loop. In between the object belongs
 * to the worker.
 */
#pragma once

struct work;
struct work_pool;

typedef void work_fn(struct work *w);

struct work {
    work_fn *run;
    work_fn *done;
    struct work *next; /* the pool's */
};

void work_submit(struct work_pool *p, struct work *w);
