/* SPDX-License-Identifier: MIT */
/*
 * The first byte gives the flags, the rest is the text. What is accepted is walked to the end, and
 * every part of it must be accepted on its own.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"

enum { DECODED_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_scalar(struct json_value v, unsigned flags)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(DECODED_MAX);
    int64_t i;
    double d;
    bool b;

    (void)json_to_bool(v, &b);
    (void)json_to_double(v, &d);
    if (json_to_int(v, &i) && json_to_double(v, &d) && i > -(1LL << 53) && i < 1LL << 53)
        assert((double)i == d);
    if (v.type == JSON_STRING && json_decode_string(v, flags, &out) == 0)
        assert(out.n <= v.n * 3 && out.p[out.n] == '\0');
}

/* The parts of v, down to a few levels; each is again good JSON. */
static void use(struct json_value v, unsigned flags, int levels)
{
    struct json_value key, item, again;
    struct err e;

    if (json_parse(v.p, v.n, flags | JSON_LENIENT_DUPES, &again, &e) < 0)
        abort();
    assert(again.p == v.p && again.n == v.n && again.type == v.type);
    use_scalar(v, flags);
    if (levels == 0)
        return;
    for (size_t at = 0; json_array_next(v, &at, &item);)
        use(item, flags, levels - 1);
    for (size_t at = 0; json_object_next(v, &at, &key, &item);) {
        use(key, flags, 0);
        use(item, flags, levels - 1);
    }
    if (v.type == JSON_OBJECT && json_get(v, "a", &item))
        assert(item.p > v.p && item.p + item.n < v.p + v.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_value v;
    struct err e;
    unsigned flags;

    if (size == 0)
        return 0;
    flags = data[0] & 7u;
    if (json_parse((const char *)data + 1, size - 1, flags, &v, &e) == 0)
        use(v, flags, size < 4096 ? 6 : 1);
    else
        assert(strlen(e.text) > 0);
    return 0;
}
