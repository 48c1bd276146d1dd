/* SPDX-License-Identifier: MIT */
/*
 * What a program asks of a door by HTTP. A request that is taken names a host; what is passed on is
 * one head without a line break that the door did not put there.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(const struct request *r, bool clean)
{
    struct buf out = BUF_INIT(8 * H1_HEAD_MAX);
    const char *end;

    request_write(r, r->host, r->port ? r->port : EGRESS_HTTP, clean, &out);
    assert(!out.failed && out.n > 4 && memcmp(out.p + out.n - 4, "\r\n\r\n", 4) == 0);
    end = strstr(out.p, "\r\n\r\n");
    assert(end && (size_t)(end - out.p) == out.n - 4);
    for (size_t i = 0; i < out.n; i++) {
        assert(out.p[i] != '\r' || out.p[i + 1] == '\n');
        assert(out.p[i] != '\n' || out.p[i - 1] == '\r');
    }
    buf_done(&out);
}

/* A clean path is its own clean form. */
static void check_path(const struct request *r)
{
    char again[EGRESS_PATH_MAX + 1];

    assert(r->path[0] == '/' && !strstr(r->path, "/../") && !strstr(r->path, "/./"));
    assert(egress_path_clean(r->path, strlen(r->path), again) && strcmp(again, r->path) == 0);
    assert(egress_path_matches("/**", r->path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* exact, so that a sanitizer sees a step beyond */
    struct request *r = malloc(sizeof *r);

    if (!text || !r)
        abort();
    memcpy(text, data, size);
    if (size <= H1_HEAD_MAX && request_read(text, size, r) == EGRESS_ALLOWED) {
        assert(r->host[0] && (!r->tunnel || r->port != 0));
        if (r->clean)
            check_path(r);
        if (!r->tunnel)
            check_written(r, r->clean);
    }
    free(r);
    free(text);
    return 0;
}
