/* SPDX-License-Identifier: MIT */
/* /bind_port and /unbind_port: what the TCP proxy leads to. */
#include <string.h>

#include "app/sandbox/expose.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"

enum { REPLY_MAX = 256 + 6 * PERSISTENT_PORT_MAX };

static void reply_taken(struct http_call *c, const struct persistent *p)
{
    struct buf body = BUF_INIT(REPLY_MAX);
    struct jw w = koyeb_writer(&body, false);

    jw_object(&w);
    jw_kv_string(&w, "current_port", p->port);
    jw_kv_string(&w, "error", "Port already bound");
    jw_kv_bool(&w, "success", false);
    jw_object_end(&w);
    http_reply_json(c, 409, &body);
}

static void reply_bound(struct http_call *c, const struct persistent *p)
{
    struct buf body = BUF_INIT(REPLY_MAX);
    struct jw w = koyeb_writer(&body, false);
    uint16_t own = expose_own_port(p);

    jw_object(&w);
    jw_kv_string(&w, "message", "Port binding configured");
    jw_kv_string(&w, "port", p->port);
    if (own)
        jw_kv_int(&w, "proxy_port", own);
    jw_kv_bool(&w, "success", true);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

static void bind_port(struct http_call *c, const struct koyeb_body *b)
{
    struct persistent *p;
    struct err e;

    if (b->port.n == 0) {
        koyeb_wrong(c, "Port is required");
        return;
    }
    if (b->port.n > PERSISTENT_PORT_MAX || strlen(b->port.p) != b->port.n) {
        koyeb_wrong(c, "Invalid request");
        return;
    }
    p = koyeb_sandbox(c);
    if (!p)
        return;
    if (p->port[0])
        reply_taken(c, p);
    else if (expose_bind(p, b->port.p, &e) < 0)
        koyeb_failed(c, e.text);
    else
        reply_bound(c, p);
}

void api_bind_port(struct http_call *c)
{
    struct koyeb_body body;

    if (koyeb_body(c, &koyeb_port, &body))
        bind_port(c, &body);
    koyeb_body_done(&body);
}

/* Whatever the body says: there is one port at most, and none afterwards. */
void api_unbind_port(struct http_call *c)
{
    struct persistent *p = koyeb_sandbox(c);
    struct buf body = BUF_INIT(REPLY_MAX);
    struct jw w = koyeb_writer(&body, false);

    if (!p)
        return;
    expose_unbind(p);
    jw_object(&w);
    jw_kv_string(&w, "message", "Port binding removed");
    jw_kv_bool(&w, "success", true);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}
