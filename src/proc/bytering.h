/* SPDX-License-Identifier: MIT */
/*
 * The newest bytes that a process wrote, of both streams in the order in which they were read, up
 * to a bound. Pure.
 *
 * Every byte has a number, its place in all that was ever written, from 0 on. A reader keeps the
 * number that it wants next, so any number of them read at their own speed, and one that comes back
 * goes on where it was. Bytes that are gone are a gap, and it is told how many.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
    BYTERING_MAX = 1 << 20,       /* bytes of one ring */
    BYTERING_SURE = 256 << 10,    /* that one gets whatever the others have */
    BYTERING_SEGMENTS_MAX = 8192, /* changes from one stream to another among them */
};
#define BYTERING_SHARED_MAX ((uint64_t)64 << 20) /* of all rings that share a counter */

/* Bytes of one stream up to (not with) number `end`. */
struct bytering_segment {
    uint64_t end;
    int stream;
};

struct bytering {
    char *p;                          /* owned */
    size_t room;                      /* a power of two, or 0 */
    struct bytering_segment *segment; /* owned: of those that are kept, oldest first */
    size_t segments_n, segments_room;
    uint64_t first, next; /* numbers: oldest kept, one behind the newest */
    uint64_t *shared;     /* borrowed: room of all rings together */
};

struct bytering_piece {
    const char *p; /* until something is put */
    size_t n;
    int stream;
    uint64_t at;  /* number of the first byte */
    uint64_t gap; /* bytes before it that are gone */
};

void bytering_init(struct bytering *r, uint64_t *shared);
void bytering_done(struct bytering *r); /* forgets the bytes, not how many there were */
void bytering_put(struct bytering *r, int stream, const char *p, size_t n);
/* What is there from number `at` on, of one stream; n == 0: nothing, but there may be a gap. */
struct bytering_piece bytering_read(const struct bytering *r, uint64_t at);
