/* SPDX-License-Identifier: MIT */
/* Streams of events as a daemon, or what is taken for one, sends them to a command: read at once
 * and in pieces, they are the same events. The first byte is the size of the pieces. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cli/event_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DATA_MAX = 256 };

struct seen {
    struct buf all;
};

static int see(void *user, const struct event_seen *ev)
{
    struct seen *s = user;

    assert(strlen(ev->name) <= EVENT_NAME_MAX && strlen(ev->id) <= EVENT_ID_MAX);
    assert(ev->n <= DATA_MAX && ev->data[ev->n] == '\0');
    (void)buf_printf(&s->all, "%s,%s,%zu,", ev->name, ev->id, ev->n);
    (void)buf_put(&s->all, ev->data, ev->n);
    return 0;
}

static int feed(const char *p, size_t n, size_t piece, struct seen *s)
{
    struct event_lines l;
    int r = 0;

    event_lines_init(&l, DATA_MAX);
    for (size_t i = 0; i < n && r == 0; i += piece)
        r = event_lines_feed(&l, p + i, n - i < piece ? n - i : piece, see, s);
    event_lines_done(&l);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data + 1;
    struct seen whole = {.all = BUF_INIT(1 << 20)}, pieces = {.all = BUF_INIT(1 << 20)};

    if (size < 1)
        return 0;
    /* where a line is too long, the pieces decide what has been seen before */
    if (feed(p, size - 1, size, &whole) == 0 &&
        feed(p, size - 1, (size_t)data[0] % 16 + 1, &pieces) == 0) {
        assert(whole.all.n == pieces.all.n);
        assert(whole.all.n == 0 || memcmp(whole.all.p, pieces.all.p, whole.all.n) == 0);
    }
    buf_done(&whole.all);
    buf_done(&pieces.all);
    return 0;
}
