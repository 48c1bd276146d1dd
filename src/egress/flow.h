/* SPDX-License-Identifier: MIT */
/*
 * Bytes on their way from one socket to another, without a copy through our memory where nobody has
 * to look at them: a pipe holds what the reader has not taken yet, and nothing more is read
 * meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "http/server/h1.h"

enum { FLOW_WORDS_MAX = 96 * 1024 };

/* How far the bytes of the source belong to what is being sent. */
enum flow_end {
    FLOW_TO_END, /* as long as there are any */
    FLOW_LENGTH, /* `left` of them */
    FLOW_CHUNKS, /* until the last chunk */
};

struct flow {
    int from, to;    /* borrowed; -1: not there yet */
    int tube[2];     /* owned; -1: not needed so far */
    size_t held;     /* in the tube */
    struct buf said; /* goes first: what we say ourselves, and what was looked at */
    enum flow_end until;
    uint64_t left;
    struct h1_chunks chunks;
    bool ended; /* nothing more is read */
    bool half;  /* its end is passed on as the end of what `to` gets */
    bool shut;  /* that has been done */
};

void flow_init(struct flow *f);
void flow_done(struct flow *f);
/* Moves what can be moved: bytes read from the source, or -1: one of the sockets is broken, or what
 * came is no chunk. */
int64_t flow_move(struct flow *f);
/* Everything that was read has been written, too, and there will be no more. */
bool flow_is_over(const struct flow *f);
/* What is it waiting for? */
static inline bool flow_reads(const struct flow *f)
{
    return !f->ended && f->held == 0 && f->said.n == 0;
}
static inline bool flow_writes(const struct flow *f)
{
    return f->held > 0 || f->said.n > 0;
}
