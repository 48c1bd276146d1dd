/* SPDX-License-Identifier: MIT */
#include "base/lines.h"

#include <string.h>

static void hand_on(struct lines *l, line_fn *fn, void *user)
{
    fn(user, l->held.p ? l->held.p : "", l->held.n);
    buf_clear(&l->held);
}

/* Part of a line; what does not fit begins the next piece. */
static void hold(struct lines *l, const char *p, size_t n, line_fn *fn, void *user)
{
    while (n > 0) {
        size_t room = l->held.max - l->held.n;
        size_t k = n < room ? n : room;

        if (k == 0 || buf_put(&l->held, p, k) < 0) {
            hand_on(l, fn, user);
            if (k > 0 && buf_put(&l->held, p, k) < 0)
                l->held.failed = false; /* no memory: these bytes are lost, the rest goes on */
        }
        p += k;
        n -= k;
    }
}

void lines_feed(struct lines *l, const char *p, size_t n, line_fn *fn, void *user)
{
    const char *end = p + n;

    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        size_t k = (size_t)((lf ? lf : end) - p);

        if (lf && l->held.n == 0 && k <= l->held.max) {
            fn(user, p, k); /* from where it lies */
        } else {
            hold(l, p, k, fn, user);
            if (lf)
                hand_on(l, fn, user);
        }
        p += k + (lf != NULL);
    }
}

void lines_end(struct lines *l, line_fn *fn, void *user)
{
    if (l->held.n > 0)
        hand_on(l, fn, user);
}

void lines_done(struct lines *l)
{
    buf_done(&l->held);
}
