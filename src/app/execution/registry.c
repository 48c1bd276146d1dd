/* SPDX-License-Identifier: MIT */
#include "app/execution/registry.h"

#include <string.h>

#include "base/random.h"

void registry_init(struct registry *r, registry_free_fn *free_fn)
{
    *r = (struct registry){.free_fn = free_fn};
    random_bytes(&r->seed, sizeof r->seed);
    TAILQ_INIT(&r->all);
    TAILQ_INIT(&r->active);
    TAILQ_INIT(&r->finished);
}

/* FNV-1a with a secret start: enough against callers who choose ids, given bounded chains. */
static struct registry_bucket *bucket_of(const struct registry *r, const char *id)
{
    uint32_t h = 2166136261u ^ r->seed;

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 16777619u;
    return (struct registry_bucket *)&r->buckets[(h ^ (h >> 15)) % REGISTRY_BUCKETS];
}

struct execution *registry_find(const struct registry *r, const char *id)
{
    struct execution *x;

    SLIST_FOREACH(x, bucket_of(r, id), in.chain)
    {
        if (strcmp(x->id, id) == 0)
            return x;
    }
    return NULL;
}

static void unchain(struct registry *r, struct execution *x)
{
    TAILQ_REMOVE(&r->all, x, in.all);
    SLIST_REMOVE(bucket_of(r, x->id), x, execution, in.chain);
    r->bytes -= x->in.bytes;
    r->free_fn(x);
}

void registry_forget(struct registry *r, struct execution *x)
{
    TAILQ_REMOVE(&r->finished, x, in.link);
    r->finished_n--;
    unchain(r, x);
}

void registry_done(struct registry *r)
{
    struct execution *x;

    for (x = TAILQ_FIRST(&r->finished); x; x = TAILQ_FIRST(&r->finished))
        registry_forget(r, x);
    for (x = TAILQ_FIRST(&r->active); x; x = TAILQ_FIRST(&r->active)) {
        TAILQ_REMOVE(&r->active, x, in.link);
        r->active_n--;
        unchain(r, x);
    }
}

static void chain(struct registry *r, struct execution *x)
{
    SLIST_INSERT_HEAD(bucket_of(r, x->id), x, in.chain);
    x->in.number = ++r->numbers;
    TAILQ_INSERT_TAIL(&r->all, x, in.all);
}

void registry_add(struct registry *r, struct execution *x)
{
    struct execution *old = registry_find(r, x->id);

    if (old)
        registry_forget(r, old);
    chain(r, x);
    TAILQ_INSERT_TAIL(&r->active, x, in.link);
    r->active_n++;
}

bool registry_charge(struct registry *r, struct execution *x, uint64_t bytes)
{
    if (r->count_max == 0 || bytes > r->bytes_max)
        return false;
    while (r->bytes > r->bytes_max - bytes && !TAILQ_EMPTY(&r->finished))
        registry_forget(r, TAILQ_FIRST(&r->finished));
    if (r->bytes > r->bytes_max - bytes)
        return false;
    x->in.bytes += bytes;
    r->bytes += bytes;
    return true;
}

void registry_refund(struct registry *r, struct execution *x, uint64_t bytes)
{
    x->in.bytes -= bytes;
    r->bytes -= bytes;
}

/* What it takes in memory, but for its artifacts, which were counted when they came. */
static uint64_t bytes_of(const struct execution *x)
{
    const struct run_result *r = &x->task.result;

    return sizeof *x + r->out.cap + r->err.cap + r->result.cap + r->error.cap + r->progress.cap;
}

/* Its artifacts are counted already. */
static bool keep(struct registry *r, struct execution *x, int64_t now_us)
{
    x->in.finished_us = now_us;
    if (!registry_charge(r, x, bytes_of(x))) {
        unchain(r, x);
        return false;
    }
    TAILQ_INSERT_TAIL(&r->finished, x, in.link);
    r->finished_n++;
    while (r->finished_n > r->count_max)
        registry_forget(r, TAILQ_FIRST(&r->finished));
    return true;
}

bool registry_finish(struct registry *r, struct execution *x, int64_t now_us)
{
    TAILQ_REMOVE(&r->active, x, in.link);
    r->active_n--;
    return keep(r, x, now_us);
}

void registry_restore(struct registry *r, struct execution *x, int64_t finished_us)
{
    struct execution *old = registry_find(r, x->id);

    if (old)
        registry_forget(r, old);
    chain(r, x);
    for (size_t i = 0; i < x->artifacts.n; i++)
        if (x->artifacts.v[i]->stored.number != 0)
            (void)registry_charge(r, x, x->artifacts.v[i]->stored.size);
    (void)keep(r, x, finished_us);
}

int64_t registry_expire(struct registry *r, int64_t now_us)
{
    const int64_t age_max_us = (int64_t)r->age_max_us;
    struct execution *x;

    for (x = TAILQ_FIRST(&r->finished); x; x = TAILQ_FIRST(&r->finished)) {
        if (x->in.finished_us + age_max_us > now_us)
            return x->in.finished_us + age_max_us;
        registry_forget(r, x);
    }
    return 0;
}
