/* SPDX-License-Identifier: MIT */
#include "http/server/sse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum {
    SSE_EVENT_MAX = 64 * 1024 * 1024, /* one event with its framing */
    INDEX_MAX = 24,                   /* digits of an item's number */
};

static void begin(struct sse *s, struct http_call *c, const char *caching)
{
    *s = (struct sse){.call = c};
    http_set_header(c, "Cache-Control", caching);
    http_set_header(c, "X-Accel-Buffering", "no");
    http_stream_begin(c, 200, "text/event-stream");
}

void sse_begin(struct sse *s, struct http_call *c)
{
    begin(s, c, "no-cache");
}

void sse_begin_unchanged(struct sse *s, struct http_call *c)
{
    begin(s, c, "no-cache, no-transform");
}

/* A field value ends at the first line break: none may be smuggled in. */
static void put_field(struct buf *b, const char *name, const char *value, size_t n)
{
    (void)buf_puts(b, name);
    (void)buf_puts(b, ": ");
    (void)buf_put(b, value, n);
    (void)buf_putc(b, '\n');
}

/* White space between JSON tokens may contain line breaks; each line is a data field of its own. */
static void put_data(struct buf *b, const char *json, size_t n)
{
    size_t at = 0;

    do {
        size_t end = at;

        while (end < n && json[end] != '\n' && json[end] != '\r')
            end++;
        put_field(b, "data", json + at, end - at);
        at = end + 1;
    } while (at <= n);
}

bool sse_send(struct sse *s, const char *event, const char *id, const char *json, size_t n)
{
    struct buf b = BUF_INIT(SSE_EVENT_MAX);

    (void)buf_reserve(&b, n + 64);
    put_field(&b, "event", event, strcspn(event, "\r\n"));
    if (id)
        put_field(&b, "id", id, strcspn(id, "\r\n"));
    put_data(&b, json, n);
    (void)buf_putc(&b, '\n');
    if (b.failed) {
        s->dropped++;
    } else {
        s->full = http_stream_write(s->call, b.p, b.n) >= HTTP_STREAM_HIGH;
        s->sent++;
    }
    buf_done(&b);
    return !s->full;
}

bool sse_send_item(struct sse *s, size_t index, const char *json, size_t n)
{
    char id[INDEX_MAX];

    (void)snprintf(id, sizeof id, "%zu", index);
    return sse_send(s, "item", id, json, n);
}

void sse_drained(struct sse *s)
{
    s->full = false;
}

void sse_end(struct sse *s)
{
    http_stream_end(s->call);
}

uint64_t sse_resume_at(const char *last)
{
    unsigned long long n;
    char *end;

    if (!last || *last < '0' || *last > '9')
        return 0;
    errno = 0;
    n = strtoull(last, &end, 10);
    return *end || errno || n == UINT64_MAX ? 0 : (uint64_t)n + 1;
}
