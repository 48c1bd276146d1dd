/* SPDX-License-Identifier: MIT */
/*
 * The text of a file in the spool, named "x". Whatever lies there: what is found is a whole JSON
 * object inside the text, and finding it again gives the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "net/spool_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* exact, so that a sanitizer sees a step beyond */
    struct bytes body = {0}, again = {0};
    struct json_value v;
    struct err e;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (spool_file_body("x", text, size, &body) == 0) {
        assert(body.p >= text && body.n >= 2 && body.p + body.n <= text + size);
        assert(json_parse(body.p, body.n, JSON_LENIENT_DUPES, &v, &e) == 0);
        assert(v.type == JSON_OBJECT && v.n == body.n);
        assert(spool_file_body("x", text, size, &again) == 0 && again.p == body.p);
        assert(spool_file_body("y", text, size, &again) < 0);
    }
    free(text);
    return 0;
}
