/* SPDX-License-Identifier: MIT */
/*
 * First byte: the maximum; second: the size of the pieces; the rest is what a hostile wrapper
 * writes. Fed at once and in pieces, the reader must say the same.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "core/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct heard {
    struct buf frames; /* put together again */
    size_t max;
};

static void hear(void *user, char kind, const char *p, size_t n)
{
    struct heard *h = user;

    assert(n <= h->max);
    if (frame_put(&h->frames, kind, p, n) < 0)
        abort();
}

static void feed(struct heard *h, struct frame_reader *r, const char *p, size_t n, size_t piece)
{
    h->frames = BUF_INIT(1 << 24);
    frame_reader_init(r, h->max);
    for (size_t at = 0; at < n; at += piece)
        if (frame_reader_feed(r, p + at, n - at < piece ? n - at : piece, hear, h) < 0)
            break;
    assert(!r->too_long || r->broken);
    assert(r->broken || h->frames.n + r->buf.n == n);
    assert(h->frames.n <= n && memcmp(h->frames.p ? h->frames.p : "", p, h->frames.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct heard whole, pieces;
    struct frame_reader a, b;

    if (size < 3)
        return 0;
    whole.max = pieces.max = data[0];
    feed(&whole, &a, (const char *)data + 2, size - 2, size);
    feed(&pieces, &b, (const char *)data + 2, size - 2, data[1] % 32 + 1u);
    assert(a.broken == b.broken && a.too_long == b.too_long);
    assert(whole.frames.n == pieces.frames.n);
    frame_reader_done(&a);
    frame_reader_done(&b);
    buf_done(&whole.frames);
    buf_done(&pieces.frames);
    return 0;
}
