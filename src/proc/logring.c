/* SPDX-License-Identifier: MIT */
#include "proc/logring.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64, CHECK_EVERY = 256 };

void logring_init(struct logring *r, uint64_t *shared)
{
    *r = (struct logring){.first = 1, .next = 1, .shared = shared};
    TAILQ_INIT(&r->readers);
}

static size_t cost(const struct logline *l)
{
    return sizeof *l + l->n;
}

static struct logline **slot_of(struct logring *r, uint64_t number)
{
    return &r->slot[number & (r->room - 1)];
}

static void drop_first(struct logring *r)
{
    struct logline **s = slot_of(r, r->first++);

    r->bytes -= cost(*s);
    *r->shared -= cost(*s);
    free(*s);
    *s = NULL;
}

void logring_done(struct logring *r)
{
    while (r->first < r->next)
        drop_first(r);
    free(r->slot);
    r->slot = NULL;
}

/* Looking at all readers is dear when there are thousands, so it is not done for every line. */
static bool is_needed(struct logring *r, uint64_t number)
{
    struct logreader *l;

    if (r->needed > number || (r->checked && r->next - r->checked < CHECK_EVERY))
        return r->needed <= number;
    r->needed = r->next;
    r->checked = r->next;
    TAILQ_FOREACH(l, &r->readers, link)
    if (l->at < r->needed)
        r->needed = l->at;
    return r->needed <= number;
}

static void trim(struct logring *r)
{
    while (r->next - r->first > LOGRING_LINES && !is_needed(r, r->first))
        drop_first(r);
    while (r->first < r->next && (r->bytes > LOGRING_BYTES_MAX || *r->shared > LOGRING_SHARED_MAX))
        drop_first(r);
}

static bool grow(struct logring *r)
{
    size_t room = r->room ? r->room * 2 : FIRST_ROOM;
    struct logline **more;

    if (r->next - r->first < r->room)
        return true;
    more = calloc(room, sizeof(struct logline *));
    if (!more)
        return false;
    for (uint64_t i = r->first; i < r->next; i++)
        more[i & (room - 1)] = *slot_of(r, i);
    free(r->slot);
    r->slot = more;
    r->room = room;
    return true;
}

static void wake_all(struct logring *r)
{
    struct logreader *l = TAILQ_FIRST(&r->readers), *next;

    for (; l; l = next) {
        next = TAILQ_NEXT(l, link); /* one that is through may detach itself */
        l->wake(l->user);
    }
}

void logring_put(struct logring *r, int stream, const char *p, size_t n, struct logtime at)
{
    struct logline *l = malloc(sizeof *l + n);

    if (!l || !grow(r)) {
        free(l);
        return; /* out of memory: the line is lost, the process goes on */
    }
    *l = (struct logline){.at_s = at.s, .at_ns = at.ns, .n = (uint32_t)n, .stream = stream};
    memcpy(l->text, p, n);
    *slot_of(r, r->next++) = l;
    r->bytes += cost(l);
    *r->shared += cost(l);
    trim(r);
    wake_all(r);
}

void logring_end(struct logring *r)
{
    if (r->ended)
        return;
    r->ended = true;
    wake_all(r);
}

void logreader_attach(struct logreader *l, struct logring *r, uint64_t from, logreader_fn *wake,
                      void *user)
{
    *l = (struct logreader){.ring = r, .at = from ? from : r->first, .wake = wake, .user = user};
    if (l->at > r->next)
        l->at = r->next;
    if (l->at < r->needed)
        r->needed = l->at;
    TAILQ_INSERT_TAIL(&r->readers, l, link);
}

void logreader_detach(struct logreader *l)
{
    struct logring *r = l->ring;

    l->ring = NULL;
    if (!r)
        return;
    TAILQ_REMOVE(&r->readers, l, link);
    r->checked = 0;
    trim(r); /* what only this one needed goes */
}

const struct logline *logreader_next(struct logreader *l, uint64_t *ret_number, uint64_t *ret_gap)
{
    struct logring *r = l->ring;

    *ret_gap = 0;
    if (l->at < r->first) {
        *ret_gap = r->first - l->at;
        l->at = r->first;
        return NULL;
    }
    if (l->at >= r->next)
        return NULL;
    *ret_number = l->at;
    return *slot_of(r, l->at++);
}

bool logreader_at_end(const struct logreader *l)
{
    return l->ring->ended && l->at >= l->ring->next;
}
