/* SPDX-License-Identifier: MIT */
/* Any other port of a sandbox. */
#include "http/api/e2b/e2b.h"
#include "http/api/e2b/target.h"
#include "http/api/sandboxes/port_proxy.h"

static void refuse(struct http_call *c, const char *id, uint16_t port, enum port_failure why)
{
    if (why == PORT_CLOSED)
        e2b_reply_closed_port(c, id, port);
    else if (why == PORT_GONE)
        e2b_reply_gone(c, id);
    else if (why == PORT_BUSY)
        e2b_reply_status(c, 503, "the sandbox has no place for another request");
    else
        e2b_reply_status(c, 502, "the server at this port gave no answer that is HTTP");
}

void e2b_port(struct http_call *c)
{
    uint16_t port = e2b_port_of(c);
    struct persistent *p = e2b_sandbox(c);

    if (p)
        proxy_call(c, &(struct proxy_order){
                          .home = p, .port = port, .target = http_target(c), .refuse = refuse});
}
