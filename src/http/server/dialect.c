/* SPDX-License-Identifier: MIT */
#include "http/server/dialect.h"

bool dialect_decode(struct http_call *c, const struct shape *shape, void *target, struct shaping *s)
{
    const struct http_request *r = http_request(c);

    shaping_init(s, http_app(c));
    s->lenient = http_dialect(c)->lenient;
    if (shape_parse(shape, r->body, r->body_n, target, s) == 0)
        return true;
    http_dialect(c)->issues(c, s);
    return false;
}
