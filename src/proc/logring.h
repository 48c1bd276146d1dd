/* SPDX-License-Identifier: MIT */
/*
 * What a process wrote, line by line, in the order it came: the newest LOGRING_LINES
 * lines, and older ones while an attached reader still needs them, up to a budget of
 * bytes. Pure.
 *
 * Lines are numbered from 1. Each reader has its own place, so it sees history and
 * what follows without a gap or a duplicate, at its own speed; a slow one slows
 * nobody. When lines it had not seen are dropped, it is told how many.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    LOGRING_LINES = 10000,
    LOGRING_LINE_MAX = 1 << 20, /* longer ones come in pieces */
};
#define LOGRING_BYTES_MAX  ((uint64_t)64 << 20)  /* of one ring */
#define LOGRING_SHARED_MAX ((uint64_t)512 << 20) /* of all rings that share a counter */

struct logline {
    int64_t at_s;
    int32_t at_ns;
    uint32_t n;
    int stream;
    char text[];
};

/* There is something to read, or the end. Called from within logring_put() and logring_end(). */
typedef void logreader_fn(void *user);

struct logreader {
    TAILQ_ENTRY(logreader) link;
    struct logring *ring; /* borrowed; NULL: detached */
    uint64_t at;          /* the number it wants next */
    logreader_fn *wake;
    void *user;
};

struct logring {
    struct logline **slot; /* owned */
    size_t room;           /* a power of two */
    uint64_t first, next;  /* numbers: oldest kept, one behind the newest */
    uint64_t bytes;
    uint64_t *shared; /* borrowed: bytes of all rings together */
    uint64_t needed;  /* no reader wants anything older; may be too low */
    uint64_t checked; /* `next` when that was found out */
    bool ended;
    TAILQ_HEAD(logreaders, logreader) readers;
};

void logring_init(struct logring *r, uint64_t *shared);
void logring_done(struct logring *r); /* no reader may be left */

struct logtime {
    int64_t s;
    int32_t ns;
};
void logring_put(struct logring *r, int stream, const char *p, size_t n, struct logtime at);
void logring_end(struct logring *r); /* nothing more will come */

/* from 0: the oldest there is. */
void logreader_attach(struct logreader *l, struct logring *r, uint64_t from, logreader_fn *wake,
                      void *user);
void logreader_detach(struct logreader *l);
/* The next line and its number, or NULL when there is none now. When lines were dropped, *ret_gap
 * is how many and the line comes with the next call. The line stays until something is put. */
const struct logline *logreader_next(struct logreader *l, uint64_t *ret_number, uint64_t *ret_gap);
/* Everything has been read and nothing more will come. */
bool logreader_at_end(const struct logreader *l);
