/* SPDX-License-Identifier: MIT */
/*
 * The reader holds at most one unfinished frame. A frame that arrives whole is handed over from
 * the caller's memory without a copy. Memory grows with bytes that really came, never with a
 * length somebody merely announced.
 */
#include "core/frame.h"

#include <string.h>

static const char kinds_in[] = {FRAME_RESULT, FRAME_ERROR,   FRAME_PROGRESS, FRAME_READY,
                                FRAME_BEGUN,  FRAME_ITEM,    FRAME_FAREWELL, FRAME_PLACED,
                                FRAME_LEFT,   FRAME_COMPILED};

void frame_head(char head[FRAME_HEAD], char kind, uint32_t n)
{
    static const char digits[] = "0123456789abcdef";

    head[0] = kind;
    for (int i = FRAME_HEAD - 1; i > 0; i--, n >>= 4)
        head[i] = digits[n & 15];
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int frame_length(const char *head, size_t have, uint32_t *ret)
{
    uint32_t n = 0;

    for (size_t i = 1; i < have && i < FRAME_HEAD; i++) {
        int d = digit(head[i]);

        if (d < 0)
            return -1;
        n = n << 4 | (uint32_t)d;
    }
    *ret = n;
    return 0;
}

int frame_put(struct buf *b, char kind, const void *p, size_t n)
{
    char head[FRAME_HEAD];

    /* All or nothing: half a frame would spoil everything after it. */
    if (b->failed || n > UINT32_MAX || n > b->max || buf_reserve(b, FRAME_HEAD + n) < 0) {
        b->failed = true;
        return -1;
    }
    frame_head(head, kind, (uint32_t)n);
    (void)buf_put(b, head, sizeof head);
    return buf_put(b, p, n);
}

void frame_reader_init(struct frame_reader *r, size_t payload_max)
{
    *r = (struct frame_reader){.buf = BUF_INIT(FRAME_HEAD + payload_max),
                               .payload_max = payload_max};
}

void frame_reader_done(struct frame_reader *r)
{
    buf_done(&r->buf);
}

static int break_off(struct frame_reader *r)
{
    r->broken = true;
    buf_done(&r->buf);
    return -1;
}

/* Checks as much of a head as there is, so that garbage is refused at its first byte. */
static int head_check(struct frame_reader *r, const char *p, size_t have, size_t *ret_payload)
{
    uint32_t n;

    if (have > 0 && !memchr(kinds_in, p[0], sizeof kinds_in))
        return break_off(r);
    if (frame_length(p, have, &n) < 0)
        return break_off(r);
    if (have >= FRAME_HEAD && n > r->payload_max) {
        r->too_long = true;
        return break_off(r);
    }
    *ret_payload = n;
    return 0;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Adds input to the frame in progress until it is complete. Bytes used, or -1. */
static int resume(struct frame_reader *r, const char *p, size_t n, size_t *ret_used,
                  bool *ret_whole)
{
    size_t used = 0, payload = 0;

    *ret_whole = false;
    if (r->buf.n < FRAME_HEAD) {
        used = smaller(n, FRAME_HEAD - r->buf.n);
        if (buf_put(&r->buf, p, used) < 0)
            return break_off(r);
    }
    if (head_check(r, r->buf.p, r->buf.n, &payload) < 0)
        return -1;
    if (r->buf.n >= FRAME_HEAD) {
        size_t more = smaller(n - used, FRAME_HEAD + payload - r->buf.n);

        if (buf_put(&r->buf, p + used, more) < 0)
            return break_off(r);
        used += more;
        *ret_whole = r->buf.n == FRAME_HEAD + payload;
    }
    *ret_used = used;
    return 0;
}

int frame_reader_feed(struct frame_reader *r, const char *p, size_t n, frame_fn *fn, void *user)
{
    while (n > 0 && !r->broken) {
        size_t used, payload = 0;
        bool whole;

        if (r->buf.n == 0 && n >= FRAME_HEAD) {
            if (head_check(r, p, n, &payload) < 0)
                return -1;
            if (n - FRAME_HEAD >= payload) {
                fn(user, p[0], p + FRAME_HEAD, payload);
                p += FRAME_HEAD + payload;
                n -= FRAME_HEAD + payload;
                continue;
            }
        }
        if (resume(r, p, n, &used, &whole) < 0)
            return -1;
        if (whole) {
            fn(user, r->buf.p[0], r->buf.p + FRAME_HEAD, r->buf.n - FRAME_HEAD);
            buf_clear(&r->buf);
        }
        p += used;
        n -= used;
    }
    return r->broken ? -1 : 0;
}
