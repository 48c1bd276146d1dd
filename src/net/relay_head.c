/* SPDX-License-Identifier: MIT */
#include "net/relay_head.h"

#include <string.h>
#include <strings.h>

enum { PORT_HTTP = 80 };

/* Where the head ends, empty line included; 0: not yet. */
static size_t head_length(const char *p, size_t n)
{
    for (size_t i = 3; i < n; i++)
        if (p[i] == '\n' && p[i - 1] == '\r' && p[i - 2] == '\n' && p[i - 3] == '\r')
            return i + 1;
    return 0;
}

static bool is_clean(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] <= ' ' || p[i] == 0x7f)
            return false;
    return n > 0;
}

static bool parse_connect(const char *target, size_t n, struct relay_request *r)
{
    r->tunnel = true;
    return package_host_parse(target, n, &r->host) && r->host.port != 0;
}

/* No user information: a host is told who asks by a header, or not at all. */
static bool parse_absolute(const char *target, size_t n, struct relay_request *r)
{
    static const char scheme[] = "http://";
    size_t skip = sizeof scheme - 1, host_n;
    const char *slash;

    if (n <= skip || strncasecmp(target, scheme, skip) != 0)
        return false;
    target += skip, n -= skip;
    slash = memchr(target, '/', n);
    host_n = slash ? (size_t)(slash - target) : n;
    if (!package_host_parse(target, host_n, &r->host))
        return false;
    if (r->host.port == 0)
        r->host.port = PORT_HTTP;
    r->path = slash ? slash : "/";
    r->path_n = slash ? n - host_n : 1;
    return true;
}

static bool is_word(const char *p, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(p, word, n) == 0;
}

/* METHOD SP target SP HTTP/1.x */
static bool parse_line(const char *line, size_t n, struct relay_request *r)
{
    const char *sp = memchr(line, ' ', n), *target = sp ? sp + 1 : NULL;
    const char *last = target ? memchr(target, ' ', n - (size_t)(target - line)) : NULL;
    size_t target_n = last ? (size_t)(last - target) : 0;

    if (!last || !is_clean(target, target_n) ||
        (!is_word(last + 1, n - (size_t)(last + 1 - line), "HTTP/1.1") &&
         !is_word(last + 1, n - (size_t)(last + 1 - line), "HTTP/1.0")))
        return false;
    r->method = line;
    r->method_n = (size_t)(sp - line);
    if (is_word(line, r->method_n, "CONNECT"))
        return parse_connect(target, target_n, r);
    if (!is_word(line, r->method_n, "GET") && !is_word(line, r->method_n, "HEAD"))
        return false; /* nothing is ever sent to an index */
    return parse_absolute(target, target_n, r);
}

int relay_request_parse(const char *p, size_t n, struct relay_request *ret)
{
    struct relay_request r = {.head_n = head_length(p, n)};
    const char *end;

    if (r.head_n == 0)
        return n >= RELAY_HEAD_MAX || memchr(p, '\0', n) ? -1 : 0;
    if (r.head_n > RELAY_HEAD_MAX || memchr(p, '\0', r.head_n))
        return -1;
    end = memchr(p, '\r', r.head_n);
    if (end[1] != '\n' || !parse_line(p, (size_t)(end - p), &r))
        return -1;
    r.fields = end + 2;
    r.fields_n = r.head_n - (size_t)(r.fields - p) - 2;
    *ret = r;
    return 1;
}

/* ---- passing it on ---- */

/* Hop by hop, or about a body that there is not. */
static bool is_dropped(const char *line, size_t n)
{
    static const char *const dropped[] = {
        "host",    "connection", "proxy-connection", "proxy-authorization", "keep-alive",     "te",
        "trailer", "upgrade",    "expect",           "transfer-encoding",   "content-length",
    };
    const char *colon = memchr(line, ':', n);
    size_t name_n = colon ? (size_t)(colon - line) : 0;

    if (name_n == 0 || !is_clean(line, name_n))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        if (name_n == strlen(dropped[i]) && strncasecmp(line, dropped[i], name_n) == 0)
            return true;
    return false;
}

static bool has_control(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)p[i] < ' ' && p[i] != '\t') || p[i] == 0x7f)
            return true;
    return false;
}

void relay_request_write(const struct relay_request *r, struct buf *out)
{
    bool literal = strchr(r->host.name, ':') != NULL;

    (void)buf_put(out, r->method, r->method_n);
    (void)buf_putc(out, ' ');
    (void)buf_put(out, r->path, r->path_n);
    (void)buf_printf(out, " HTTP/1.1\r\nHost: %s%s%s", literal ? "[" : "", r->host.name,
                     literal ? "]" : "");
    if (r->host.port != PORT_HTTP)
        (void)buf_printf(out, ":%u", r->host.port);
    (void)buf_puts(out, "\r\nConnection: close\r\n");
    for (const char *p = r->fields, *end = p + r->fields_n; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((newline ? newline : end) - p);
        size_t line_n = n > 0 && p[n - 1] == '\r' ? n - 1 : n;

        if (!is_dropped(p, line_n) && !has_control(p, line_n)) {
            (void)buf_put(out, p, line_n);
            (void)buf_puts(out, "\r\n");
        }
        p += n + 1;
    }
    (void)buf_puts(out, "\r\n");
}
