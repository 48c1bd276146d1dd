/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/shown_text.h"

#include <string.h>

#include "base/utf8.h"

enum { HEAD_PERCENT = 60, LINE_SEARCH = 500 /* bytes around a cut in which a line may end */ };

/* Length of the escape sequence at p, at least 1. */
static size_t escape_length(const char *p, size_t n)
{
    size_t i = 2;

    if (n < 2)
        return n;
    if (p[1] == ']') { /* to BEL or ESC \ */
        while (i < n && p[i] != '\a' && p[i] != '\033')
            i++;
        return i < n ? i + (p[i] == '\033' && i + 1 < n ? 2 : 1) : n;
    }
    if (p[1] == '[') { /* to a letter */
        while (i < n && (p[i] < '@' || p[i] > '~'))
            i++;
        return i < n ? i + 1 : n;
    }
    return 2;
}

void shown_plain(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)p[i];
        size_t k = i;

        if (c == '\033') {
            i += escape_length(p + i, n - i);
            continue;
        }
        while (k < n && ((unsigned char)p[k] >= ' ' || p[k] == '\n' || p[k] == '\t') &&
               p[k] != 0x7f)
            k++;
        (void)buf_put(out, p + i, k - i);
        i = k > i ? k : i + 1;
    }
}

bool shown_cut(const char *p, size_t n, size_t most, struct shown_cut *ret)
{
    size_t head, tail;
    const char *nl;

    if (n <= most)
        return false;
    head = utf8_truncate(p, n, most * HEAD_PERCENT / 100);
    tail = n - (most - most * HEAD_PERCENT / 100);
    nl = memrchr(p, '\n', head);
    if (nl && (size_t)(p + head - nl) < LINE_SEARCH)
        head = (size_t)(nl - p) + 1;
    nl = memchr(p + tail, '\n', LINE_SEARCH < n - tail ? LINE_SEARCH : n - tail);
    if (nl)
        tail = (size_t)(nl - p) + 1;
    while (tail < n && ((unsigned char)p[tail] & 0xc0) == 0x80)
        tail++;
    *ret = (struct shown_cut){head, tail};
    return true;
}

void shown_part(struct buf *text, const char *label, const char *p, size_t n)
{
    while (n > 0 && p[n - 1] == '\n')
        n--;
    if (n == 0)
        return;
    if (text->n > 0)
        (void)buf_putc(text, '\n');
    (void)buf_puts(text, label);
    (void)buf_put(text, p, n);
}
