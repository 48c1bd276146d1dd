/* SPDX-License-Identifier: MIT */
#include "app/mcp/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { US_PER_S = 1000000 };

void replay_init(struct replay *r)
{
    *r = (struct replay){0};
    TAILQ_INIT(&r->list);
}

static void forget(struct replay *r, struct replay_event *e)
{
    TAILQ_REMOVE(&r->list, e, link);
    r->n--;
    r->bytes -= e->n;
    free(e);
}

void replay_done(struct replay *r)
{
    while (!TAILQ_EMPTY(&r->list))
        forget(r, TAILQ_FIRST(&r->list));
}

void replay_keep(struct replay *r, uint32_t stream, uint32_t number, const char *json, size_t n)
{
    struct replay_event *e = n <= REPLAY_BYTES_MAX ? malloc(sizeof *e + n) : NULL;

    if (!e)
        return;
    while (r->n >= REPLAY_EVENTS_MAX || r->bytes + n > REPLAY_BYTES_MAX)
        forget(r, TAILQ_FIRST(&r->list));
    *e = (struct replay_event){.stream = stream, .number = number, .at_us = clock_us(), .n = n};
    if (n > 0)
        memcpy(e->json, json, n);
    TAILQ_INSERT_TAIL(&r->list, e, link);
    r->n++;
    r->bytes += n;
}

const struct replay_event *replay_next(const struct replay *r, uint32_t stream, uint32_t after)
{
    const struct replay_event *e;

    TAILQ_FOREACH(e, &r->list, link)
    if (e->stream == stream && e->number > after)
        return e;
    return NULL;
}

void replay_expire(struct replay *r, uint64_t now_us)
{
    struct replay_event *e;

    while ((e = TAILQ_FIRST(&r->list)) && now_us - e->at_us > (uint64_t)REPLAY_S * US_PER_S)
        forget(r, e);
}
