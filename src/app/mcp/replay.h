/* SPDX-License-Identifier: MIT */
/*
 * Events of a session's streams that a client which lost its connection may ask for again. Streams
 * are numbered, and events in each of them. Of too many, or too large ones, the oldest go; so does
 * what is older than a minute.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum { REPLAY_EVENTS_MAX = 256, REPLAY_BYTES_MAX = 1 << 20, REPLAY_S = 60 };

struct replay_event {
    TAILQ_ENTRY(replay_event) link;
    uint32_t stream, number;
    uint64_t at_us;
    size_t n;
    char json[];
};
TAILQ_HEAD(replay_list, replay_event);

struct replay {
    struct replay_list list; /* owned; the oldest first */
    size_t n, bytes;
    uint32_t streams; /* numbers that were given out */
};

void replay_init(struct replay *r);
void replay_done(struct replay *r);
/* Without memory, or when it is too large, it is not kept. */
void replay_keep(struct replay *r, uint32_t stream, uint32_t number, const char *json, size_t n);
/* The next one of that stream; NULL: there is none. */
const struct replay_event *replay_next(const struct replay *r, uint32_t stream, uint32_t after);
void replay_expire(struct replay *r, uint64_t now_us);
