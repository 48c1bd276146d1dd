/* SPDX-License-Identifier: MIT */
/* Any bytes as a message of JSON-RPC and as the header that mirrors one of its members: what is
 * taken lies inside, an answer with its id is a message again, and whatever is refused says why. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "http/api/mcp/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 20, HEADER_MAX = 4096 };

static bool is_inside(struct json_value v, const char *p, size_t n)
{
    return !v.p || (v.p >= p && v.n <= n && v.p + v.n <= p + n);
}

/* Both kinds of answer are messages, with the id as it came. */
static void check_answers(const struct rpc_message *m)
{
    cleanup_with(buf_done) struct buf result = BUF_INIT(OUT_MAX), error = BUF_INIT(OUT_MAX);
    struct rpc_message again;
    struct rpc_fault fault;

    rpc_write_result(&result, m->id, "{}", 2);
    rpc_write_error(&error, m->id, RPC_INTERNAL, "words", "{\"a\":1}");
    if (result.failed || error.failed)
        return;
    assert(rpc_parse(result.p, result.n, &again, &fault) == 0 && again.kind == RPC_RESPONSE);
    assert(again.id.n == m->id.n && (!m->id.p || memcmp(again.id.p, m->id.p, m->id.n) == 0));
    assert(rpc_parse(error.p, error.n, &again, &fault) == 0 && again.kind == RPC_RESPONSE);
}

static void check_header(const char *p, size_t n)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(HEADER_MAX);
    char value[HEADER_MAX];
    size_t length = n < sizeof value - 1 ? n : sizeof value - 1;

    memcpy(value, p, length);
    value[length] = '\0';
    if (rpc_header_decode(value, &out) == 0)
        assert(out.n <= strlen(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    struct rpc_message m;
    struct rpc_fault fault = {0};

    if (rpc_parse(p, size, &m, &fault) < 0)
        assert(fault.code != 0 && fault.words[0] && strlen(fault.words) < RPC_WORDS_MAX);
    else
        assert(m.kind == RPC_RESPONSE || m.method[0] || size > 0);
    assert(is_inside(m.id, p, size) && is_inside(m.params, p, size) && is_inside(m.meta, p, size));
    assert(strlen(m.method) <= RPC_METHOD_MAX && strlen(m.version) <= RPC_VERSION_MAX);
    check_answers(&m);
    if (size > 0)
        check_header(p, size);
    return 0;
}
