/* SPDX-License-Identifier: MIT */
/* Any bytes as a chunked body: the result must not depend on the pieces they come in. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/server/h1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    char *payload; /* owned; room for the whole input */
    size_t payload_n, used;
    bool bad, done;
};

static void decode(const char *in, size_t n, size_t step, struct outcome *o)
{
    struct h1_chunks c = {.state = H1_CHUNK_SIZE};

    while (o->used < n && c.state != H1_CHUNK_DONE && !o->bad) {
        const char *data;
        size_t data_n;
        size_t have = n - o->used < step ? n - o->used : step;
        ssize_t k = h1_chunk(&c, in + o->used, have, &data, &data_n);

        o->bad = k < 0;
        if (o->bad)
            break;
        assert(k > 0 && (size_t)k <= have);
        assert(data >= in && data + data_n <= in + o->used + k);
        memcpy(o->payload + o->payload_n, data, data_n);
        o->payload_n += data_n;
        o->used += (size_t)k;
    }
    o->done = c.state == H1_CHUNK_DONE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *one = malloc(size + 1), *two = malloc(size + 1);
    struct outcome whole = {.payload = one}, parts = {.payload = two};

    if (!one || !two)
        return 0;
    decode((const char *)data, size, size, &whole);
    decode((const char *)data, size, size % 7 + 1, &parts);
    assert(whole.bad == parts.bad && whole.done == parts.done);
    assert(whole.payload_n == parts.payload_n);
    assert(memcmp(one, two, whole.payload_n) == 0);
    if (whole.done)
        assert(whole.used == parts.used);
    return 0;
}
