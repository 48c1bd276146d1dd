/* SPDX-License-Identifier: MIT */
/*
 * Frames: how a wrapper inside the sandbox and the daemon talk over descriptor 3.
 *
 *   1 byte kind, 8 lower-case hexadecimal digits = length in bytes, payload
 *
 * Any language can read and write this in a few lines. The channel is apart
 * from stdout, so nothing a program prints can be mistaken for a result.
 * What comes back is written by a hostile party: the decoder trusts nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

enum {
    FRAME_HEAD = 9, /* bytes before the payload */

    /* daemon to wrapper, in this order */
    FRAME_CODE = 'C',     /* source text */
    FRAME_EVENT = 'V',    /* JSON text */
    FRAME_CONTEXT = 'X',  /* JSON object: execution_id, function_name, remaining_ms, ... */
    FRAME_COMPILED = 'K', /* what the source text was compiled to before. Also the other way: the
                             first frame of all, if it was asked for; empty: too large */
    FRAME_GO = 'G',       /* empty: everything has been said */

    /* daemon to a wrapper that stays (function/sip.h), one at a time, after GO was answered */
    FRAME_CALL = 'P',   /* JSON object: what to call, and the token of the answer */
    FRAME_STREAM = 'S', /* the same; items of a generator are sent one by one */
    FRAME_ANSWER = 'A', /* JSON object: what became of a call of a tool (src/lang/cells) */
    FRAME_RELOAD = 'Z', /* token: the program is loaded anew in the same process */

    /* wrapper to daemon; one that stays begins every payload with the token it was given */
    FRAME_RESULT = 'R',   /* JSON text of the returned value */
    FRAME_ERROR = 'E',    /* JSON object: type, message, stack */
    FRAME_PROGRESS = 'P', /* JSON object */
    FRAME_READY = 'Y',    /* the program was loaded */
    FRAME_BEGUN = 'B',    /* a call begins: from now on it can be interrupted */
    FRAME_ITEM = 'I',     /* JSON text of one item */
    FRAME_FAREWELL = 'F', /* like ERROR, and the program ends */

    /* runner to daemon, before there is a wrapper and after it */
    FRAME_PLACED = 'L', /* empty: all files of the job are in place */
    FRAME_LEFT = 'Q',   /* one byte, the exit status: nothing more will come, nothing was kept */

    FRAME_LEFT_N = 1,
    FRAME_TOKEN = 16, /* bytes of a token: hexadecimal digits */
};

/* The head of a frame of n bytes, not NUL-terminated. */
void frame_head(char head[FRAME_HEAD], char kind, uint32_t n);
/* The number of bytes that a head tells, or as much of one as there is. -1: no digit. */
must_check int frame_length(const char *head, size_t have, uint32_t *ret);
/* Appends one frame. Fails only when the buffer's maximum is reached. */
must_check int frame_put(struct buf *b, char kind, const void *p, size_t n);

/*
 * Incremental decoder of what a wrapper sends. Feed bytes as they come; each
 * complete frame is handed to the callback, which must leave the reader alone.
 * Returns 0, or -1 when the peer broke the protocol (a kind that is not a
 * wrapper's, bad digit, longer than the maximum); it then stays broken.
 */
struct frame_reader {
    struct buf buf; /* owned: bytes of the frame in progress */
    size_t payload_max;
    bool broken;
    bool too_long; /* broken because a frame exceeded payload_max */
};

typedef void frame_fn(void *user, char kind, const char *p, size_t n);

void frame_reader_init(struct frame_reader *r, size_t payload_max);
void frame_reader_done(struct frame_reader *r);
must_check int frame_reader_feed(struct frame_reader *r, const char *p, size_t n, frame_fn *fn,
                                 void *user);
