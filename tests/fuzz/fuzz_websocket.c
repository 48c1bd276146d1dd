/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the frames of a client. No message is longer than allowed, text is UTF-8, and the
 * pieces that the bytes come in make no difference.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "http/server/ws_frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGE_MAX = 4096, ROOM = 1 << 22 };

struct seen {
    struct buf heard, said;
};

static void on_message(void *user, bool text, const char *p, size_t n)
{
    struct seen *s = user;

    assert(n <= MESSAGE_MAX);
    assert(!text || utf8_is_valid(p, n));
    (void)buf_putc(&s->heard, text ? 'T' : 'B');
    (void)buf_put(&s->heard, p, n);
}

static void on_write(void *user, const void *p, size_t n)
{
    struct seen *s = user;

    (void)buf_put(&s->said, p, n);
}

/* The bytes in pieces of this size. */
static void run(struct seen *s, const char *p, size_t n, size_t piece)
{
    const struct ws_frames_events events = {on_message, on_write, s};
    struct ws_frames *f = ws_frames_new(&events, MESSAGE_MAX);

    s->heard = s->said = BUF_INIT(ROOM);
    if (!f)
        abort();
    for (size_t at = 0; at < n; at += piece)
        if (!ws_frames_feed(f, p + at, n - at < piece ? n - at : piece))
            break;
    ws_frames_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole, bytes;

    run(&whole, (const char *)data, size, size ? size : 1);
    run(&bytes, (const char *)data, size, 1);
    assert(whole.heard.n == bytes.heard.n && whole.said.n == bytes.said.n);
    assert(whole.heard.n == 0 || memcmp(whole.heard.p, bytes.heard.p, whole.heard.n) == 0);
    assert(whole.said.n == 0 || memcmp(whole.said.p, bytes.said.p, whole.said.n) == 0);
    buf_done(&whole.heard);
    buf_done(&whole.said);
    buf_done(&bytes.heard);
    buf_done(&bytes.said);
    return 0;
}
