/* SPDX-License-Identifier: MIT */
#include "http/server/dialect.h"

#include <stdio.h>
#include <string.h>

#include "core/nearest.h"
#include "http/server/conn.h"

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

/* ---- paths that are nearly right ---- */

/* The pattern with the segments that a path has where the pattern takes any: what was meant, if
 * this row was. */
static void fill_stars(const char *pattern, const char *path, char out[DIALECT_NEAREST_MAX])
{
    size_t n = 0;

    while (*pattern && n < DIALECT_NEAREST_MAX - 1) {
        size_t want = strcspn(pattern + 1, "/") + 1, have = *path ? strcspn(path + 1, "/") + 1 : 0;
        bool any = pattern[1] == '*' && have > 1;

        n += (size_t)snprintf(out + n, DIALECT_NEAREST_MAX - n, "%.*s", (int)(any ? have : want),
                              any ? path : pattern);
        pattern += want;
        path += have;
    }
    out[n < DIALECT_NEAREST_MAX ? n : DIALECT_NEAREST_MAX - 1] = '\0';
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), end_n = strlen(end);

    return end_n > 1 && n >= end_n && strcmp(text + n - end_n, end) == 0;
}

bool dialect_nearest(const struct http_call *c, char out[DIALECT_NEAREST_MAX])
{
    const char *path = http_request(c)->path;
    char filled[DIALECT_NEAREST_MAX], shown[DIALECT_NEAREST_MAX];
    struct nearest near;
    size_t least;

    if (strlen(path) >= NEAREST_NAME_MAX)
        return false;
    nearest_begin(&near, path);
    least = 2 + near.wrong_n / 4;
    for (const struct dialect *const *d = c->srv->conf.dialects; *d; d++) {
        for (size_t i = 0; i < (*d)->routes.n && !((*d)->traits & DIALECT_ELSEWHERE); i++) {
            const struct route *r = &(*d)->routes.row[i];
            size_t far;

            fill_stars(r->path, path, filled);
            far = ends_with(path, filled) ? 1 : nearest_distance(&near, filled);
            if (strlen(filled) >= NEAREST_NAME_MAX || far >= least || far >= near.wrong_n)
                continue;
            least = far;
            (void)snprintf(shown, sizeof shown, "%.10s %.100s", r->method, filled);
        }
    }
    if (least == 2 + near.wrong_n / 4)
        return false;
    memcpy(out, shown, sizeof shown);
    return true;
}

void dialect_allow(const struct http_call *c, char out[DIALECT_NEAREST_MAX])
{
    const char *path = http_request(c)->path;

    route_allow(&c->dialect->routes, path, strlen(path), out);
}
