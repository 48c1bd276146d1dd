/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a request head. What is accepted must be consistent: every view
 * lies inside the head, ends there, and the framing is unambiguous.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "http/server/h1.h"
#include "http/server/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(const char *s, const char *b, size_t n)
{
    assert(s >= b && s < b + n);
    assert(memchr(s, '\0', (size_t)(b + n - s)));
    assert(!strpbrk(s, "\r\n"));
}

static size_t count_fields(const struct h1_head *h, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < h->fields_n; i++)
        n += strcasecmp(h->field[i].name, name) == 0;
    return n;
}

static void check_head(const struct h1_head *h, const char *b, size_t n)
{
    check_view(h->method, b, n);
    check_view(h->target, b, n);
    assert(h->fields_n <= H1_FIELDS_MAX);
    for (size_t i = 0; i < h->fields_n; i++) {
        check_view(h->field[i].name, b, n);
        check_view(h->field[i].value, b, n);
        assert(h1_is_token(h->field[i].name, strlen(h->field[i].name)));
    }
    assert(count_fields(h, "host") <= 1 && (h->minor == 0 || count_fields(h, "host") == 1));
    assert(count_fields(h, "content-length") + count_fields(h, "transfer-encoding") <= 1);
    assert(h->length >= -1 && !(h->chunked && h->length >= 0));
}

static void check_path(const char *target)
{
    size_t n = strcspn(target, "?");
    cleanup_free char *plain = malloc(n + 1);
    struct route_match m;

    if (!plain || !route_decode(target, n, plain))
        return;
    assert(strlen(plain) <= n);
    if (route_path_matches("/v1/*/files/**", target, n, &m))
        assert(m.n == 2 && m.len[0] > 0);
}

/* The end of the head must not depend on the pieces it comes in. */
static void check_pieces(const char *b, size_t n)
{
    size_t whole = 0, scanned = 0;
    ssize_t end = h1_head_end(b, n, &whole);

    for (size_t at = 1; at <= n && at <= 512; at++) {
        ssize_t k = h1_head_end(b, at, &scanned);

        assert(k == 0 || k == end);
        if (k != 0)
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_free char *b = malloc(size ? size : 1);
    struct h1_head h;

    if (!b)
        return 0;
    memcpy(b, data, size);
    check_pieces(b, size);
    if (h1_parse_head(b, size, &h) == 0) {
        check_head(&h, b, size);
        check_path(h.target);
    }
    return 0;
}
