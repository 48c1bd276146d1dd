/* SPDX-License-Identifier: MIT */
/* /v1/sandboxes/{id}/ports/{port}/{path}: servers inside a sandbox, for requests with the secret.
 */
#include <string.h>

#include "http/api/api.h"
#include "http/api/problem.h"
#include "http/api/sandboxes/port_proxy.h"

enum { SEGMENTS = 5 }; /* in front of the path that the server sees */

static void refuse(struct http_call *c, const char *id, uint16_t port, enum port_failure why)
{
    static const struct {
        const char *code, *words, *solution;
        int status;
    } rows[] = {
        [PORT_CLOSED] = {.status = 502,
                         .code = "Executor.PortClosed",
                         .words = "Nothing listens at this port of the sandbox",
                         .solution = "Start a server there, on 127.0.0.1, ::1 or every address."},
        [PORT_GONE] = {.status = 404,
                         .code = "Executor.NotFound",
                         .words = "The sandbox has ended"                           },
        [PORT_BUSY] = {.status = 503,
                         .code = "Executor.Busy",
                         .words = "The sandbox has no place for another request",
                         .solution = "Try again later."},
        [PORT_FAILED] = {.status = 502,
                         .code = "Executor.PortFailed",
                         .words = "The server at this port gave no answer that is HTTP"        },
    };

    (void)id, (void)port;
    reply_problem(c, &(struct reply_problem){.status = rows[why].status,
                                             .code = rows[why].code,
                                             .description = rows[why].words,
                                             .solution = rows[why].solution});
}

/* Decimal, 1 to 65535; 0: none. */
static uint16_t port_of(const char *text)
{
    unsigned n = 0;

    if (strlen(text) > 5 || text[strspn(text, "0123456789")])
        return 0;
    for (; *text; text++)
        n = n * 10 + (unsigned)(*text - '0');
    return n <= UINT16_MAX ? (uint16_t)n : 0;
}

/* The path behind the port, as it came. */
static const char *rest_of(const char *target)
{
    for (int i = 0; i < SEGMENTS; i++)
        target += 1 + strcspn(target + 1, "/?");
    return *target == '/' ? target : "/";
}

void api_sandbox_port(struct http_call *c)
{
    const char *const *param = http_request(c)->param;
    uint16_t port = port_of(param[1]);
    struct persistent *p;
    struct err e;

    if (port == 0) {
        (void)err_set(&e, ERR_CALLER, "port: '%.16s' is none", param[1]);
        http_reply_error(c, &e);
    } else if (sandboxes_find_awake(http_app(c)->sandboxes, param[0], &p, &e) < 0) {
        http_reply_error(c, &e);
    } else {
        proxy_call(c, &(struct proxy_order){.home = p,
                                            .port = port,
                                            .target = rest_of(http_target(c)),
                                            .our_origin = true,
                                            .refuse = refuse});
    }
}
