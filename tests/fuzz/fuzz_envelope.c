/* SPDX-License-Identifier: MIT */
/* Any bytes as envelopes: what is taken lies inside, a head that is written reads the same, and
 * fewer bytes never say anything else than that more are needed. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "http/api/e2b/envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    size_t at = 0;
    struct envelope e;

    while (envelope_take(p + at, size - at, MAX, &e) == ENVELOPE_OK) {
        size_t n = ENVELOPE_HEAD + e.n;
        unsigned char head[ENVELOPE_HEAD];
        struct envelope less;

        assert(e.n <= MAX && at + n <= size && e.p == p + at + ENVELOPE_HEAD);
        envelope_head(e.flags, e.n, head);
        assert(memcmp(head, p + at, ENVELOPE_HEAD) == 0);
        assert(envelope_take(p + at, n - 1, MAX, &less) == ENVELOPE_SHORT);
        at += n;
    }
    return 0;
}
