/* SPDX-License-Identifier: MIT */
/* Any bytes as the head of an answer of a server inside a sandbox. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/server/h1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A field that is passed on must not begin another one. */
static void check_text(const char *s, const char *from, const char *to)
{
    assert(s >= from && s + strlen(s) < to);
    for (; *s; s++)
        assert((unsigned char)*s >= 0x20 || *s == '\t');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *copy = malloc(size + 1);
    size_t scanned = 0;
    struct h1_answer a;
    ssize_t n;

    if (!copy)
        return 0;
    memcpy(copy, data, size);
    copy[size] = '\0';
    n = h1_head_end(copy, size < H1_HEAD_MAX ? size : H1_HEAD_MAX, &scanned);
    if (n <= 0 || !h1_parse_answer(copy, (size_t)n, &a))
        return 0;
    assert(a.status >= 100 && a.status <= 599);
    assert(!(a.head.chunked && a.head.length >= 0));
    check_text(a.reason, copy, copy + n);
    for (size_t i = 0; i < a.head.fields_n; i++) {
        assert(h1_is_token(a.head.field[i].name, strlen(a.head.field[i].name)));
        check_text(a.head.field[i].value, copy, copy + n);
    }
    return 0;
}
