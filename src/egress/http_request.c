/* SPDX-License-Identifier: MIT */
#include "egress/http_request.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

static enum egress_verdict host_verdict(enum egress_host_kind kind)
{
    return kind == EGRESS_HOST_BAD   ? EGRESS_BAD_REQUEST
           : kind == EGRESS_HOST_ODD ? EGRESS_ADDRESS
                                     : EGRESS_ALLOWED;
}

static enum egress_verdict read_authority(struct request *r, const char *p, size_t n)
{
    return host_verdict(egress_target_read(p, n, r->host, &r->port));
}

/* No user information: a host is told who asks by a header, or not at all. */
static enum egress_verdict read_absolute(struct request *r)
{
    static const char scheme[] = "http://";
    const char *authority;
    size_t n;

    if (strncasecmp(r->head.target, scheme, sizeof scheme - 1) != 0)
        return EGRESS_BAD_REQUEST;
    authority = r->head.target + sizeof scheme - 1;
    n = strcspn(authority, "/?#");
    r->absolute = true;
    r->target = authority[n] == '/' ? authority + n : "/";
    if (authority[n] && authority[n] != '/')
        return EGRESS_BAD_REQUEST;
    return read_authority(r, authority, n);
}

static enum egress_verdict read_origin(struct request *r)
{
    const char *host = h1_field(&r->head, "host");

    if (r->head.target[0] != '/' || !host)
        return EGRESS_BAD_REQUEST;
    r->target = r->head.target;
    return read_authority(r, host, strlen(host));
}

static bool lists(const char *value, const char *item, size_t item_n)
{
    for (const char *p = value; p && *p;) {
        size_t n;

        p += strspn(p, ", \t");
        n = strcspn(p, ", \t");
        if (n == item_n && n > 0 && strncasecmp(p, item, n) == 0)
            return true;
        p += n + strcspn(p + n, ",");
    }
    return false;
}

/* In any of the fields of that name. */
static bool any_lists(const struct h1_head *h, const char *name, const char *item)
{
    for (size_t i = 0; i < h->fields_n; i++)
        if (strcasecmp(h->field[i].name, name) == 0 && lists(h->field[i].value, item, strlen(item)))
            return true;
    return false;
}

static bool is_forbidden(const struct request *r)
{
    const char *upgrade = h1_field(&r->head, "upgrade");

    return strcmp(r->head.method, "TRACE") == 0 || strcmp(r->head.method, "TRACK") == 0 ||
           (upgrade && any_lists(&r->head, "upgrade", "h2c"));
}

enum egress_verdict request_read(char *text, size_t n, struct request *ret)
{
    enum egress_verdict v;

    *ret = (struct request){0};
    if (h1_parse_head(text, n, &ret->head) != 0 || is_forbidden(ret))
        return EGRESS_BAD_REQUEST;
    if (strcmp(ret->head.method, "CONNECT") == 0) {
        ret->tunnel = true;
        v = read_authority(ret, ret->head.target, strlen(ret->head.target));
        return v == EGRESS_ALLOWED && ret->port == 0 ? EGRESS_BAD_REQUEST : v;
    }
    v = ret->head.target[0] == '/' ? read_origin(ret) : read_absolute(ret);
    if (v != EGRESS_ALLOWED)
        return v;
    ret->clean = egress_path_clean(ret->target, strlen(ret->target), ret->path);
    ret->upgrades = strcmp(ret->head.method, "GET") == 0 && !h1_has_body(&ret->head) &&
                    any_lists(&ret->head, "upgrade", "websocket") &&
                    any_lists(&ret->head, "connection", "upgrade");
    return EGRESS_ALLOWED;
}

/* ---- writing ---- */

/* Between two hops, or written by ourselves. */
static bool is_dropped(const struct request *r, const char *name)
{
    static const char *const dropped[] = {
        "host", "connection", "proxy-connection", "proxy-authorization", "keep-alive",
        "te",   "trailer",    "upgrade",          "transfer-encoding",   "content-length",
    };

    for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
        if (strcasecmp(name, dropped[i]) == 0)
            return true;
    return any_lists(&r->head, "connection", name);
}

void request_write(const struct request *r, const char *host, uint16_t port, bool clean,
                   struct buf *out)
{
    const struct h1_head *h = &r->head;
    bool literal = strchr(host, ':') != NULL;
    size_t path_n = strcspn(r->target, "?#");

    (void)buf_printf(out, "%s %s%.*s HTTP/1.%d\r\nHost: %s%s%s", h->method, clean ? r->path : "",
                     (int)strcspn(r->target + clean * path_n, "#"), r->target + clean * path_n,
                     h->minor, literal ? "[" : "", host, literal ? "]" : "");
    if (port != EGRESS_HTTP)
        (void)buf_printf(out, ":%u", port);
    (void)buf_puts(out, r->upgrades ? "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                                    : "\r\nConnection: close\r\n");
    if (h->chunked)
        (void)buf_puts(out, "Transfer-Encoding: chunked\r\n");
    else if (h->length >= 0)
        (void)buf_printf(out, "Content-Length: %" PRId64 "\r\n", h->length);
    for (size_t i = 0; i < h->fields_n; i++)
        if (!is_dropped(r, h->field[i].name))
            (void)buf_printf(out, "%s: %s\r\n", h->field[i].name, h->field[i].value);
    (void)buf_puts(out, "\r\n");
}
