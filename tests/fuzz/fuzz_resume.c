/* SPDX-License-Identifier: MIT */
/*
 * Last-Event-ID and what follows from it: the text up to a newline says where a reader goes on;
 * each byte behind it puts a line of that many characters, or lets the reader read. A reader that
 * counts gaps and lines together has seen every number once.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/server/sse.h"
#include "proc/logring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void on_wake(void *user)
{
    *(int *)user += 1;
}

static uint64_t follow(struct logreader *l, uint64_t want)
{
    const struct logline *line;
    uint64_t number, gap = 0;

    for (;;) {
        line = logreader_next(l, &number, &gap);
        if (!line && gap == 0)
            return want;
        want += gap;
        if (line) {
            assert(want == 0 || number == want);
            assert(number < l->ring->next);
            want = number + 1;
        }
        gap = 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[256];
    char *last = malloc(n + 1), *rest;
    uint64_t shared = 0, from, want;
    struct logreader reader;
    struct logring ring;
    int woken = 0;

    assert(last);
    memcpy(last, data, n);
    last[n] = '\0';
    rest = memchr(last, '\n', n);
    if (rest)
        *rest++ = '\0';
    from = sse_resume_at(last);
    assert(from == 0 || (last[0] >= '0' && last[0] <= '9'));
    logring_init(&ring, &shared);
    for (int i = 0; i < 5; i++)
        logring_put(&ring, 1, "line", 4, (struct logtime){1, 0});
    logreader_attach(&reader, &ring, from, on_wake, &woken);
    want = from > ring.next ? 0 : from;
    for (const char *p = rest; p && p < last + n; p++) {
        unsigned char c = (unsigned char)*p;

        if (c < 128)
            logring_put(&ring, c & 1, text, c, (struct logtime){2, 0});
        else
            want = follow(&reader, want);
    }
    logring_end(&ring);
    (void)follow(&reader, want);
    assert(logreader_at_end(&reader));
    logreader_detach(&reader);
    logring_done(&ring);
    assert(shared == 0);
    free(last);
    return 0;
}
