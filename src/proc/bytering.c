/* SPDX-License-Identifier: MIT */
#include "proc/bytering.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4096, FIRST_SEGMENTS = 16 };

void bytering_init(struct bytering *r, uint64_t *shared)
{
    *r = (struct bytering){.shared = shared};
}

void bytering_done(struct bytering *r)
{
    *r->shared -= r->room;
    free(r->p);
    free(r->segment);
    *r = (struct bytering){.first = r->next, .next = r->next, .shared = r->shared};
}

/* ---- room ---- */

static void copy_in(char *to, size_t room, uint64_t at, const char *p, size_t n)
{
    size_t start = (size_t)(at & (room - 1));
    size_t head = n < room - start ? n : room - start;

    memcpy(to + start, p, head);
    memcpy(to, p + head, n - head);
}

/* The bytes that are kept, in one or two pieces, into a larger room. */
static void move_to(struct bytering *r, char *p, size_t room)
{
    for (uint64_t at = r->first; at < r->next;) {
        size_t start = (size_t)(at & (r->room - 1));
        size_t n = r->next - at < r->room - start ? (size_t)(r->next - at) : r->room - start;

        copy_in(p, room, at, r->p + start, n);
        at += n;
    }
    free(r->p);
    *r->shared += room - r->room;
    r->p = p;
    r->room = room;
}

/* Room for n bytes more without losing one, if that is allowed. */
static void make_room(struct bytering *r, size_t n)
{
    size_t room = r->room ? r->room : FIRST_ROOM;
    uint64_t want = r->next - r->first + n;
    char *p;

    while (room < want && room < BYTERING_MAX)
        room *= 2;
    while (room > BYTERING_SURE && room > r->room &&
           *r->shared + (room - r->room) > BYTERING_SHARED_MAX)
        room /= 2;
    if (room <= r->room)
        return;
    p = malloc(room);
    if (p)
        move_to(r, p, room);
}

/* ---- which stream ---- */

/* The oldest bytes go, down to this number. */
static void drop_until(struct bytering *r, uint64_t first)
{
    size_t gone = 0;

    if (first <= r->first)
        return;
    r->first = first;
    while (gone < r->segments_n && r->segment[gone].end <= first)
        gone++;
    r->segments_n -= gone;
    if (gone > 0)
        memmove(r->segment, r->segment + gone, r->segments_n * sizeof *r->segment);
}

static bool grow_segments(struct bytering *r)
{
    size_t room = r->segments_room ? r->segments_room * 2 : FIRST_SEGMENTS;
    struct bytering_segment *more = realloc(r->segment, room * sizeof *more);

    if (!more)
        return false;
    r->segment = more;
    r->segments_room = room;
    return true;
}

/* A quarter of them at once: moving the rest down is not done for every byte. */
static bool add_segment(struct bytering *r, int stream, uint64_t end)
{
    if (r->segments_n == BYTERING_SEGMENTS_MAX)
        drop_until(r, r->segment[BYTERING_SEGMENTS_MAX / 4].end);
    if (r->segments_n == r->segments_room && !grow_segments(r))
        return false;
    r->segment[r->segments_n++] = (struct bytering_segment){end, stream};
    return true;
}

static bool note(struct bytering *r, int stream, size_t n)
{
    struct bytering_segment *last = r->segments_n ? &r->segment[r->segments_n - 1] : NULL;

    if (!last || last->stream != stream)
        return add_segment(r, stream, r->next + n);
    last->end = r->next + n;
    return true;
}

/* ---- use ---- */

void bytering_put(struct bytering *r, int stream, const char *p, size_t n)
{
    if (n == 0)
        return;
    make_room(r, n);
    if (r->room == 0 || !note(r, stream, n)) { /* no memory: all of it is a gap */
        r->next += n;
        drop_until(r, r->next);
        return;
    }
    if (n > r->room) {
        r->next += n - r->room;
        p += n - r->room;
        n = r->room;
    }
    if (r->next + n > r->room)
        drop_until(r, r->next + n - r->room);
    copy_in(r->p, r->room, r->next, p, n);
    r->next += n;
}

static const struct bytering_segment *segment_of(const struct bytering *r, uint64_t at)
{
    size_t low = 0, high = r->segments_n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (r->segment[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return &r->segment[low];
}

struct bytering_piece bytering_read(const struct bytering *r, uint64_t at)
{
    uint64_t from = at < r->first ? r->first : at;
    struct bytering_piece piece = {.at = from, .gap = from - at};
    const struct bytering_segment *s;
    size_t start;

    if (from >= r->next)
        return piece;
    s = segment_of(r, from);
    start = (size_t)(from & (r->room - 1));
    piece.p = r->p + start;
    piece.n = s->end - from < r->room - start ? (size_t)(s->end - from) : r->room - start;
    piece.stream = s->stream;
    return piece;
}
