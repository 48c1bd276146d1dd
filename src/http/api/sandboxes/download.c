/* SPDX-License-Identifier: MIT */
#include "http/api/sandboxes/download.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/mime.h"

enum { NAME_TEXT_MAX = 1024, DATE_MAX = 40 };

void download_etag(const struct file_result *r, char out[DOWNLOAD_ETAG_MAX])
{
    (void)snprintf(out, DOWNLOAD_ETAG_MAX, "\"%llx-%llx-%llx\"", (unsigned long long)r->inode,
                   (unsigned long long)r->size,
                   (unsigned long long)r->mtime_s * 1000000000u + (unsigned long long)r->mtime_ns);
}

static bool has_etag(const char *list, const char *etag)
{
    const char *at = list ? strstr(list, etag) : NULL;

    return at || (list && strcmp(list, "*") == 0);
}

struct range {
    uint64_t from, n;
};

/* One that is too large is as large as can be, which is beyond every file. */
static bool read_number(const char **at, uint64_t *ret)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    *ret = strtoull(*at, &end, 10);
    *at = end;
    return true;
}

enum ranged { RANGE_NONE, RANGE_GOOD, RANGE_BAD };

/* One range; several, or other units, are answered with the whole. */
static enum ranged parse_range(const char *text, uint64_t size, struct range *ret)
{
    uint64_t a = 0, b = 0;
    bool has_a, has_b;

    if (!text || strncasecmp(text, "bytes=", 6) != 0 || strchr(text, ','))
        return RANGE_NONE;
    text += 6;
    has_a = read_number(&text, &a);
    if (*text++ != '-')
        return RANGE_NONE;
    has_b = read_number(&text, &b);
    if (*text || (!has_a && !has_b) || (has_a && has_b && b < a))
        return RANGE_NONE;
    if (!has_a) { /* the last b bytes */
        a = b < size ? size - b : 0;
        has_b = false;
        if (b == 0)
            return RANGE_BAD;
    }
    if (a >= size)
        return RANGE_BAD;
    if (!has_b || b >= size)
        b = size - 1;
    *ret = (struct range){a, b - a + 1};
    return RANGE_GOOD;
}

/* ---- headers ---- */

/* "inline; filename*=utf-8''NAME": ASCII, whatever the name is. */
static void set_name(struct http_call *c, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    const char *slash = strrchr(path, '/');
    cleanup_with(buf_done) struct buf text = BUF_INIT(NAME_TEXT_MAX);

    (void)buf_puts(&text, "inline; filename*=utf-8''");
    for (const char *p = slash ? slash + 1 : path; *p; p++)
        if (strchr(plain, *p))
            (void)buf_putc(&text, *p);
        else
            (void)buf_printf(&text, "%%%02X", (unsigned char)*p);
    http_set_header(c, "Content-Disposition", text.failed ? "inline" : text.p);
}

static void http_date(int64_t seconds, char out[DATE_MAX])
{
    time_t at = (time_t)seconds;
    struct tm tm;

    if (!gmtime_r(&at, &tm) || strftime(out, DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
        out[0] = '\0';
}

/* It came out of a sandbox: a browser must neither run what is in it nor guess what it is. */
static void set_headers(struct http_call *c, const char *path, const struct file_result *f,
                        bool shown)
{
    char mode[16], date[DATE_MAX];

    (void)snprintf(mode, sizeof mode, "%04o", f->mode & 07777);
    http_date(f->mtime_s, date);
    http_set_header(c, "Accept-Ranges", "bytes");
    http_set_header(c, "X-File-Mode", mode);
    if (*date)
        http_set_header(c, "Last-Modified", date);
    if (shown)
        set_name(c, path);
    else
        http_set_header(c, "Content-Disposition", "attachment");
    http_set_header(c, "Content-Security-Policy", "sandbox; default-src 'none'");
    http_set_header(c, "X-Content-Type-Options", "nosniff");
}

/* ---- conditions ---- */

/* If-None-Match decides alone when it is there. */
static bool is_unchanged(const struct http_call *c, const struct file_result *f, const char *etag)
{
    const char *list = http_header(c, "If-None-Match");
    const char *since = http_header(c, "If-Modified-Since");
    struct tm tm = {0};
    const char *end;

    if (list)
        return has_etag(list, etag);
    end = since ? strptime(since, "%a, %d %b %Y %H:%M:%S GMT", &tm) : NULL;
    return end && !*end && f->mtime_s <= (int64_t)timegm(&tm);
}

static bool is_same(const char *if_range, const struct file_result *f, const char *etag)
{
    char date[DATE_MAX];

    http_date(f->mtime_s, date);
    return strcmp(if_range, etag) == 0 || (*date && strcmp(if_range, date) == 0);
}

static bool send_file(struct http_call *c, const char *path, struct file_result *f, bool shown)
{
    const char *if_range = http_header(c, "If-Range");
    struct range range = {0, f->size};
    enum ranged ranged = RANGE_NONE;
    char etag[DOWNLOAD_ETAG_MAX], text[80];

    download_etag(f, etag);
    http_set_header(c, "ETag", etag);
    set_headers(c, path, f, shown);
    if (is_unchanged(c, f, etag)) {
        http_reply(c, 304, NULL, NULL);
        return true;
    }
    /* Ranges are for GET alone. */
    if (!http_request(c)->head && (!if_range || is_same(if_range, f, etag)))
        ranged = parse_range(http_header(c, "Range"), f->size, &range);
    if (ranged == RANGE_BAD) {
        (void)snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)f->size);
        http_set_header(c, "Content-Range", text);
        return false;
    }
    if (ranged == RANGE_GOOD) {
        (void)snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)range.from,
                       (unsigned long long)(range.from + range.n - 1), (unsigned long long)f->size);
        http_set_header(c, "Content-Range", text);
    }
    http_reply_file(c, ranged == RANGE_GOOD ? 206 : 200, mime_of(path), take_fd(&f->fd), range.from,
                    range.n);
    return true;
}

bool download_reply(struct http_call *c, const char *path, struct file_result *f, bool shown)
{
    if (f->fd >= 0)
        return send_file(c, path, f, shown);
    http_set_header(c, "Content-Disposition", shown ? "inline" : "attachment");
    http_set_header(c, "X-Content-Type-Options", "nosniff");
    http_set_header(c, "Content-Security-Policy", "sandbox; default-src 'none'");
    http_reply(c, 200, mime_of(path), f->bytes);
    return true;
}
