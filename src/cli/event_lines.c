/* SPDX-License-Identifier: MIT */
#include "cli/event_lines.h"

#include <string.h>

void event_lines_init(struct event_lines *l, size_t data_max)
{
    *l =
        (struct event_lines){.line = BUF_INIT(data_max + EVENT_ID_MAX), .data = BUF_INIT(data_max)};
}

void event_lines_done(struct event_lines *l)
{
    buf_done(&l->line);
    buf_done(&l->data);
}

static void keep_text(char *to, size_t room, const char *p, size_t n)
{
    if (n >= room || memchr(p, '\0', n))
        return; /* as if the line were not there */
    memcpy(to, p, n);
    to[n] = '\0';
}

static int on_field(struct event_lines *l, const char *p, size_t n)
{
    const char *colon = memchr(p, ':', n);
    size_t name_n = colon ? (size_t)(colon - p) : n;
    const char *value = colon ? colon + 1 : p + n;
    size_t value_n = colon ? n - name_n - 1 : 0;

    if (value_n > 0 && *value == ' ') {
        value++;
        value_n--;
    }
    if (name_n == 4 && memcmp(p, "data", 4) == 0) {
        if (l->has_data && buf_putc(&l->data, '\n') < 0)
            return -1;
        l->has_data = true;
        return buf_put(&l->data, value, value_n);
    }
    if (name_n == 5 && memcmp(p, "event", 5) == 0)
        keep_text(l->name, sizeof l->name, value, value_n);
    else if (name_n == 2 && memcmp(p, "id", 2) == 0)
        keep_text(l->id, sizeof l->id, value, value_n);
    return 0;
}

static int on_line(struct event_lines *l, event_seen_fn *fn, void *user)
{
    const char *p = l->line.n ? l->line.p : "";
    int r = 0;

    if (l->line.n > 0) {
        r = *p == ':' ? 0 : on_field(l, p, l->line.n);
    } else {
        if (l->has_data)
            r = fn(user, &(struct event_seen){l->name[0] ? l->name : "message", l->id,
                                              l->data.n ? l->data.p : "", l->data.n});
        buf_clear(&l->data);
        l->has_data = false;
        l->name[0] = '\0';
    }
    buf_clear(&l->line);
    return r;
}

/* The mark may stand in front of the first line. */
static void drop_mark(struct event_lines *l)
{
    if (!l->begun && l->line.n >= 3 && memcmp(l->line.p, "\xef\xbb\xbf", 3) == 0)
        buf_consume(&l->line, 3);
    l->begun = true;
}

int event_lines_feed(struct event_lines *l, const char *p, size_t n, event_seen_fn *fn, void *user)
{
    const char *end = p + n;

    while (p < end) {
        const char *at = p;

        if (l->cr && *p == '\n') {
            l->cr = false;
            p++;
            continue;
        }
        l->cr = false;
        while (at < end && *at != '\n' && *at != '\r')
            at++;
        if (buf_put(&l->line, p, (size_t)(at - p)) < 0)
            return -1;
        if (at == end)
            return 0;
        l->cr = *at == '\r';
        drop_mark(l);
        if (on_line(l, fn, user) < 0)
            return -1;
        p = at + 1;
    }
    return 0;
}
