/* SPDX-License-Identifier: MIT */
/*
 * All executions by id: those under way, and the finished ones that may still be asked for, bounded
 * by count, bytes and age. Owns them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/execution/execution.h"

enum { REGISTRY_BUCKETS = 4096 };

typedef void registry_free_fn(struct execution *x);

struct registry {
    size_t count_max;
    uint64_t bytes_max, age_max_us;
    registry_free_fn *free_fn;
    uint32_t seed; /* ids are the callers' choice */
    size_t active_n, finished_n;
    uint64_t bytes;                         /* kept or promised */
    uint64_t numbers;                       /* given */
    struct execution_list all;              /* by number */
    struct execution_list active, finished; /* finished: oldest first */
    SLIST_HEAD(registry_bucket, execution) buckets[REGISTRY_BUCKETS];
};

void registry_init(struct registry *r, registry_free_fn *free_fn);
void registry_done(struct registry *r); /* frees everything */

struct execution *registry_find(const struct registry *r, const char *id);
/* Under way from now on. A finished one of the same id is forgotten; an active one must not exist.
 */
void registry_add(struct registry *r, struct execution *x);
/* Counts bytes for an execution, forgetting old ones to make room; false when there is none. */
bool registry_charge(struct registry *r, struct execution *x, uint64_t bytes);
/* Some of them are not kept after all. */
void registry_refund(struct registry *r, struct execution *x, uint64_t bytes);
/* No longer under way. False: nothing is to be kept, and x is gone. */
bool registry_finish(struct registry *r, struct execution *x, int64_t now_us);
/* The same for one from an earlier life; in the order of their ends. */
void registry_restore(struct registry *r, struct execution *x, int64_t finished_us);
/* Forgets a finished one. */
void registry_forget(struct registry *r, struct execution *x);
/* Forgets what is too old. Returns when to look again, 0: no need. */
int64_t registry_expire(struct registry *r, int64_t now_us);
