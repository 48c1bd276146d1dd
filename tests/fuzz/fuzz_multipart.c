/* SPDX-License-Identifier: MIT */
/* Any bytes as a multipart body: the parts must not depend on the pieces the body comes in. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the rest has to wait after each part. */
struct target {
    struct buf *out;
    struct multipart *m;
    bool holds;
};

static int on_begin(void *user, const struct multipart_part *part, struct err *e)
{
    (void)e;
    return buf_printf(((struct target *)user)->out, "[%s|%s|", part->name,
                      part->has_filename ? part->filename : "-");
}

static int on_content(void *user, const char *p, size_t n, struct err *e)
{
    (void)e;
    return buf_put(((struct target *)user)->out, p, n);
}

static int on_end(void *user, struct err *e)
{
    struct target *t = user;

    (void)e;
    t->m->held = t->holds;
    return buf_put(t->out, "]", 1);
}

static int feed(struct multipart *m, const char *p, size_t n, struct err *e)
{
    for (size_t used = 0; n > 0; p += used, n -= used) {
        m->held = false;
        if (multipart_feed(m, p, n, &used, e) < 0)
            return -1;
        assert(used == n || (m->held && used < n));
    }
    return 0;
}

static int decode(const char *in, size_t n, size_t step, bool holds, struct buf *out)
{
    struct multipart m;
    struct target t = {out, &m, holds};
    const struct multipart_events events = {
        .begin = on_begin, .content = on_content, .end = on_end, .user = &t};
    static const char type[] = "multipart/form-data; boundary=\"x\"";
    struct err e = {0};

    assert(multipart_begin(&m, type, &events, &e) == 0);
    for (size_t at = 0; at < n; at += step)
        if (feed(&m, in + at, n - at < step ? n - at : step, &e) < 0)
            return -1;
    return multipart_end(&m, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_with(buf_done) struct buf whole = BUF_INIT(2 * size + 100000);
    cleanup_with(buf_done) struct buf parts = BUF_INIT(2 * size + 100000);
    int a = decode((const char *)data, size, size + 1, size % 2, &whole);
    int b = decode((const char *)data, size, size % 5 + 1, size % 3 == 0, &parts);

    assert(a == b);
    if (a == 0)
        assert(whole.n == parts.n && (whole.n == 0 || memcmp(whole.p, parts.p, whole.n) == 0));
    return 0;
}
