/* SPDX-License-Identifier: MIT */
/*
 * Bytes a program printed, on their way into a JSON answer: whatever they are, the answer is JSON,
 * and reading it gives the repaired text. And what base64 writes it reads; what it reads, it would
 * write again.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/jw.h"
#include "base/utf8.h"

enum { OUT_MAX = 1 << 24, STYLES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void repair(const char *p, size_t n, struct buf *out, bool each_byte)
{
    for (size_t at = 0, length; at < n; at += length) {
        bool ok;

        length = utf8_next(p + at, n - at, &ok);
        assert(length >= 1 && length <= 4 && length <= n - at);
        assert(ok == utf8_is_valid(p + at, length));
        if (ok)
            (void)buf_put(out, p + at, length);
        else
            for (size_t i = 0; i < (each_byte ? length : 1); i++)
                (void)buf_puts(out, UTF8_REPLACEMENT);
    }
}

static void check_prefixes(const char *p, size_t n)
{
    size_t good = utf8_valid_prefix(p, n);

    assert(good <= n && utf8_is_valid(p, good));
    for (size_t max = 0; max <= good; max++) {
        size_t cut = utf8_truncate(p, good, max);

        /* what is valid as a whole is valid up to every first byte of a character */
        assert(cut <= max && max - cut <= 3);
        assert(cut == good || ((unsigned char)p[cut] & 0xc0) != 0x80);
        assert(max == good || cut + 3 >= max);
    }
    assert(utf8_incomplete_tail(p, n) <= 3);
}

static void check_writer(const char *p, size_t n, unsigned style)
{
    cleanup_with(buf_done) struct buf json = BUF_INIT(OUT_MAX), back = BUF_INIT(OUT_MAX),
                                      want = BUF_INIT(OUT_MAX);
    struct jw w = {.out = &json, .ascii = style & 1, .html = style & 2};
    struct json_value v;
    struct err e;

    jw_bytes(&w, p, n);
    assert(!json.failed);
    if (json_parse(json.p, json.n, 0, &v, &e) < 0 || json_decode_string(v, 0, &back) < 0)
        abort();
    repair(p, n, &want, w.html);
    assert(back.n == want.n && memcmp(back.p, want.p ? want.p : "", want.n) == 0);
    for (size_t i = 0; w.ascii && i < json.n; i++)
        assert((unsigned char)json.p[i] < 0x80);
}

static void check_base64(const char *p, size_t n)
{
    cleanup_with(buf_done) struct buf a = BUF_INIT(OUT_MAX), b = BUF_INIT(OUT_MAX);

    if (base64_encode(p, n, &a) < 0 || base64_decode(a.p, a.n, &b) < 0)
        abort();
    assert(b.n == n && memcmp(b.p, p, n) == 0);
    buf_clear(&a);
    buf_clear(&b);
    if (base64_decode(p, n, &a) < 0)
        return;
    if (base64_encode(a.p, a.n, &b) < 0)
        abort();
    assert(b.n == n && memcmp(b.p, p, n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;

    if (size > 512)
        return 0;
    check_prefixes(p, size);
    check_writer(p, size, size > 0 ? data[0] % STYLES : 0);
    if (size > 0)
        check_base64(p, size);
    return 0;
}
