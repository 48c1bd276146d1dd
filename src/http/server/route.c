/* SPDX-License-Identifier: MIT */
#include "http/server/route.h"

#include <stdio.h>
#include <string.h>

static int hex_value(unsigned char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch |= 0x20;
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* The byte at in[*at], decoded; advances. -1 when malformed or an encoded NUL. */
static int decode_byte(const char *in, size_t n, size_t *at)
{
    int hi, lo;

    if (in[*at] != '%')
        return (unsigned char)in[(*at)++];
    if (n - *at < 3)
        return -1;
    hi = hex_value((unsigned char)in[*at + 1]);
    lo = hex_value((unsigned char)in[*at + 2]);
    if (hi < 0 || lo < 0 || hi + lo == 0)
        return -1;
    *at += 3;
    return hi * 16 + lo;
}

bool route_decode(const char *in, size_t n, char *out)
{
    size_t at = 0;

    while (at < n) {
        int ch = decode_byte(in, n, &at);

        if (ch < 0)
            return false;
        *out++ = (char)ch;
    }
    *out = '\0';
    return true;
}

/* Is the encoded segment seg[0..n) the same as this literal? */
static bool segment_is(const char *seg, size_t n, const char *literal, size_t literal_n)
{
    size_t at = 0, i = 0;

    while (at < n) {
        int ch = decode_byte(seg, n, &at);

        if (ch < 0 || i == literal_n || (unsigned char)literal[i++] != ch)
            return false;
    }
    return i == literal_n;
}

static bool match_add(struct route_match *m, const char *p, size_t n)
{
    if (m->n == HTTP_PARAMS_MAX)
        return false;
    m->p[m->n] = p;
    m->len[m->n++] = n;
    return true;
}

static size_t segment_len(const char *p, size_t n)
{
    const char *slash = memchr(p, '/', n);

    return slash ? (size_t)(slash - p) : n;
}

bool route_path_matches(const char *pattern, const char *path, size_t n, struct route_match *ret)
{
    struct route_match m = {.n = 0};
    const char *end = path + n;

    /* Both stand before a slash at the top of every turn. */
    while (*pattern == '/' && path < end && *path == '/') {
        size_t want = strcspn(pattern + 1, "/");
        size_t have = segment_len(path + 1, (size_t)(end - path) - 1);

        pattern++;
        path++;
        if (want == 2 && memcmp(pattern, "**", 2) == 0) {
            if (!match_add(&m, path, (size_t)(end - path)))
                return false;
            have = (size_t)(end - path);
        } else if (want == 1 && *pattern == '*') {
            if (have == 0 || !match_add(&m, path, have))
                return false;
        } else if (!segment_is(path, have, pattern, want)) {
            return false;
        }
        pattern += want;
        path += have;
    }
    if (*pattern || path != end)
        return false;
    *ret = m;
    return true;
}

static bool method_matches(const struct route *r, const char *method)
{
    if (r->flags & ROUTE_ANY_METHOD || strcmp(r->method, method) == 0)
        return true;
    return r->flags & ROUTE_HEAD && strcmp(method, "HEAD") == 0;
}

enum route_found route_find(const struct route_table *t, const char *method, const char *path,
                            size_t n, struct route_hit *ret)
{
    struct route_match m;
    bool seen = false;

    for (size_t i = 0; i < t->n; i++) {
        const struct route *r = &t->row[i];
        bool right = method_matches(r, method);

        if ((seen && !right) || !route_path_matches(r->path, path, n, &m))
            continue;
        *ret = (struct route_hit){r, m};
        if (right)
            return ROUTE_FOUND;
        seen = true;
    }
    return seen ? ROUTE_NO_METHOD : ROUTE_NO_PATH;
}

static void allow_add(char out[ROUTE_ALLOW_MAX], const char *method)
{
    size_t n = strlen(method), used = strlen(out);
    char *at = strstr(out, method);

    if (at && (at[n] == ',' || at[n] == '\0'))
        return;
    (void)snprintf(out + used, ROUTE_ALLOW_MAX - used, "%s%s", used ? ", " : "", method);
}

void route_allow(const struct route_table *t, const char *path, size_t n, char out[ROUTE_ALLOW_MAX])
{
    struct route_match m;

    out[0] = '\0';
    for (size_t i = 0; i < t->n; i++) {
        const struct route *r = &t->row[i];

        if (!route_path_matches(r->path, path, n, &m))
            continue;
        allow_add(out, r->method);
        if (r->flags & ROUTE_HEAD)
            allow_add(out, "HEAD");
    }
}
