/* SPDX-License-Identifier: MIT */
#include "app/execution/code_cache.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "base/random.h"

enum { BUCKETS = 256, SHARE = 8 /* of all bytes that one may take: an eighth */ };

struct kept {
    LIST_ENTRY(kept) same;  /* bucket */
    TAILQ_ENTRY(kept) link; /* the last used is the first */
    uint64_t hash;
    size_t code_n, compiled_n;
    char bytes[]; /* code, compiled */
};

struct code_cache {
    size_t bytes_max, bytes, n;
    uint64_t seed; /* nobody outside can tell which texts share a bucket */
    LIST_HEAD(, kept) buckets[BUCKETS];
    TAILQ_HEAD(kept_list, kept) all;
};

int code_cache_new(size_t bytes_max, struct code_cache **ret, struct err *e)
{
    struct code_cache *c = calloc(1, sizeof *c);

    if (!c)
        return err_set(e, ERR_HOST, "no memory for compiled code");
    c->bytes_max = bytes_max;
    random_bytes(&c->seed, sizeof c->seed);
    TAILQ_INIT(&c->all);
    *ret = c;
    return 0;
}

static void drop(struct code_cache *c, struct kept *k)
{
    LIST_REMOVE(k, same);
    TAILQ_REMOVE(&c->all, k, link);
    c->bytes -= k->code_n + k->compiled_n;
    c->n--;
    free(k);
}

void code_cache_free(struct code_cache *c)
{
    if (!c)
        return;
    while (!TAILQ_EMPTY(&c->all))
        drop(c, TAILQ_FIRST(&c->all));
    free(c);
}

static uint64_t hash(const struct code_cache *c, struct bytes code)
{
    return hash_bytes(c->seed ^ code.n, code.p, code.n);
}

static struct kept *find(struct code_cache *c, struct bytes code, uint64_t h)
{
    struct kept *k;

    LIST_FOREACH(k, &c->buckets[h % BUCKETS], same)
    if (k->hash == h && k->code_n == code.n && memcmp(k->bytes, code.p, code.n) == 0)
        return k;
    return NULL;
}

bool code_cache_find(struct code_cache *c, struct bytes code, struct bytes *ret)
{
    struct kept *k = c->n > 0 && code.n > 0 ? find(c, code, hash(c, code)) : NULL;

    if (!k)
        return false;
    TAILQ_REMOVE(&c->all, k, link);
    TAILQ_INSERT_HEAD(&c->all, k, link);
    *ret = (struct bytes){k->bytes + k->code_n, k->compiled_n};
    return true;
}

bool code_cache_wants(const struct code_cache *c, struct bytes code)
{
    return code.n > 0 && code.n <= c->bytes_max / SHARE;
}

void code_cache_add(struct code_cache *c, struct bytes code, struct bytes compiled)
{
    struct kept *k;
    uint64_t h;

    if (compiled.n == 0 || code.n + compiled.n > c->bytes_max / SHARE)
        return;
    h = hash(c, code);
    if (find(c, code, h))
        return;
    k = malloc(sizeof *k + code.n + compiled.n);
    if (!k)
        return;
    *k = (struct kept){.hash = h, .code_n = code.n, .compiled_n = compiled.n};
    memcpy(k->bytes, code.p, code.n);
    memcpy(k->bytes + code.n, compiled.p, compiled.n);
    LIST_INSERT_HEAD(&c->buckets[h % BUCKETS], k, same);
    TAILQ_INSERT_HEAD(&c->all, k, link);
    c->n++;
    c->bytes += code.n + compiled.n;
    while (c->bytes > c->bytes_max || c->n > CODES_MAX)
        drop(c, TAILQ_LAST(&c->all, kept_list));
}
