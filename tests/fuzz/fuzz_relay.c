/* SPDX-License-Identifier: MIT */
/*
 * What a program says to the relay. A request that is taken names a host and a port; what is passed
 * on is one request without a line break that the relay did not put there.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/relay_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct relay_request *q)
{
    struct buf out = BUF_INIT(4 * RELAY_HEAD_MAX);
    const char *end;

    relay_request_write(q, &out);
    assert(!out.failed && out.n > 4 && memcmp(out.p + out.n - 4, "\r\n\r\n", 4) == 0);
    end = strstr(out.p, "\r\n\r\n");
    assert(end && (size_t)(end - out.p) == out.n - 4);
    for (size_t i = 0; i < out.n; i++) {
        assert(out.p[i] != '\r' || out.p[i + 1] == '\n');
        assert(out.p[i] != '\n' || out.p[i - 1] == '\r');
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* exact, so that a sanitizer sees a step beyond */
    struct relay_request q;

    if (!text)
        abort();
    memcpy(text, data, size);
    if (relay_request_parse(text, size, &q) == 1) {
        assert(q.host.name[0] && q.host.port != 0);
        assert(q.head_n <= size && q.head_n <= RELAY_HEAD_MAX);
        if (!q.tunnel)
            check_written(&q);
    }
    free(text);
    return 0;
}
