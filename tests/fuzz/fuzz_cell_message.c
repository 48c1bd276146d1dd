/* SPDX-License-Identifier: MIT */
/* Any bytes on the channel of an interpreter: each frame is a message whose members lie inside of
 * it, or it is none; what asks for something has a number to be answered by. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "app/sandbox/cell_message.h"
#include "core/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lies_inside(struct json_value v, const char *p, size_t n)
{
    assert(!v.p || (v.p >= p && v.n > 0 && v.p + v.n <= p + n));
}

static void on_frame(void *user, char kind, const char *p, size_t n)
{
    struct cell_message m;
    int64_t number = -7;
    enum cell_ask ask;

    (void)user;
    (void)kind;
    if (cell_message_read(p, n, &m) < 0)
        return;
    lies_inside(m.id, p, n);
    lies_inside(m.type, p, n);
    lies_inside(m.tool, p, n);
    lies_inside(m.arguments, p, n);
    lies_inside(m.traceback, p, n);
    ask = cell_message_ask(&m, &number);
    assert(ask <= CELL_ASKS_BROKEN);
    if (ask == CELL_ASKS_CALL || ask == CELL_ASKS_SEARCH || ask == CELL_GIVES_UP)
        assert(m.call.p && m.call.type == JSON_NUMBER);
    else
        assert(number == -7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_reader r;

    frame_reader_init(&r, 4096);
    if (frame_reader_feed(&r, (const char *)data, size, on_frame, NULL) < 0)
        assert(r.broken);
    frame_reader_done(&r);
    return 0;
}
